#!/usr/bin/env python3
"""Turns the schemas into C: one header of structs for each schema file and one file of tables.

    generate.py --inputs  DIR              the files it reads, one a line
    generate.py --outputs DIR              the names of the files it writes, one a line
    generate.py DIR OUTPUT_DIR             writes them

The notation is described in protocol/README.md. Structs hold what a message means, one struct for
all versions; the tables hold what each version puts on the wire, and one interpreter
(protocol/codec.h) walks them. Nothing it writes is kept in the tree. Any mistake in a schema ends
the build, with file and line where there is one.
"""
import os
import re
import sys

KINDS = ('request', 'response', 'header', 'data', 'key', 'value', 'record')
# type: (C type, enum field_kind, bytes on the wire in plain and in flexible versions at least)
TYPES = {
    'bool': ('bool', 'FIELD_BOOL', 1, 1),
    'int8': ('int8_t', 'FIELD_INT8', 1, 1),
    'int16': ('int16_t', 'FIELD_INT16', 2, 2),
    'uint16': ('uint16_t', 'FIELD_UINT16', 2, 2),
    'int32': ('int32_t', 'FIELD_INT32', 4, 4),
    'uint32': ('uint32_t', 'FIELD_UINT32', 4, 4),
    'int64': ('int64_t', 'FIELD_INT64', 8, 8),
    'float64': ('double', 'FIELD_FLOAT64', 8, 8),
    'uuid': ('struct uuid', 'FIELD_UUID', 16, 16),
    'string': ('struct view', 'FIELD_STRING', 2, 1),
    'bytes': ('struct view', 'FIELD_BYTES', 4, 1),
    'records': ('struct message_records', 'FIELD_RECORDS', 4, 1),
}
ATTRIBUTES = {'tag', 'null', 'default', 'key', 'ignorable', 'entity', 'flexible'}
KEYWORDS = set('auto break case char const continue default do double else enum extern float for '
               'goto if inline int long register restrict return short signed sizeof static struct '
               'switch typedef union unsigned void volatile while bool true false'.split())


def snake(name):
    text = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    return re.sub(r'([A-Z])([A-Z][a-z])', r'\1_\2', text).lower()


def c_name(name):
    text = snake(name)
    return text + '_' if text in KEYWORDS else text


def version_range(text, top):
    """'4-18', '12+' or '3' as (first, last); None for 'none'."""
    if text == 'none':
        return None
    match = re.fullmatch(r'(\d+)(?:-(\d+)|(\+))?', text)
    if not match:
        raise ValueError('bad versions ' + text)
    first = int(match[1])
    last = int(match[2]) if match[2] else top if match[3] else first
    if last is None or last < first or last > 126:
        raise ValueError('bad versions ' + text)
    return first, last


def attributes(words):
    return {name: value for name, _, value in (word.partition('=') for word in words)}


class Struct:
    def __init__(self, message, name, versions):
        self.message, self.name, self.fields = message, name, []
        self.first, self.last = versions
        self.c = snake(message.name) if message is self else f'{snake(message.name)}_{snake(name)}'

    def ordered(self):
        """As on the wire: plain fields, then tagged ones by tag."""
        plain = [field for field in self.fields if field.tag is None]
        tagged = sorted((field for field in self.fields if field.tag is not None),
                        key=lambda field: (field.tag, field.first))
        return plain, tagged

    def minimum_bytes(self, version):
        flexible = self.message.is_flexible(version)
        total = 1 if flexible else 0
        for field in self.ordered()[0]:
            if field.first <= version <= field.last:
                total += field.minimum_bytes(version, flexible)
        return total


class Message(Struct):
    def __init__(self, kind, name, versions, words):
        super().__init__(self, name, versions)
        self.kind, self.structs = kind, {}
        found = attributes(words)
        flexible = version_range(found['flexible'], self.last)
        if flexible and flexible[1] != self.last:
            raise ValueError('flexible versions must reach the last')
        self.flexible_from = flexible[0] if flexible else None
        self.id = int(found.get('id', -1))

    def is_flexible(self, version):
        return self.flexible_from is not None and version >= self.flexible_from

    def ordered_structs(self):
        """All structs of the message, each after those that it holds."""
        done = []

        def visit(struct):
            if struct in done:
                return
            for field in struct.fields:
                if field.struct:
                    visit(field.struct)
            done.append(struct)

        for struct in list(self.structs.values()) + [self]:
            visit(struct)
        return done


class Field:
    def __init__(self, words, message):
        self.name, self.type, self.struct = words[0], words[1], None
        self.c = c_name(self.name)
        self.array = self.type.startswith('[]')
        self.base = self.type[2:] if self.array else self.type
        self.first, self.last = version_range(words[2], message.last)
        found = attributes(words[3:])
        if set(found) - ATTRIBUTES:
            raise ValueError('unknown attribute')
        self.tag = int(found['tag']) if 'tag' in found else None
        if self.tag is not None and self.tag > 126:
            raise ValueError('tag too large')
        self.null = None
        if 'null' in found:
            self.null = (version_range(found['null'], message.last) if found['null']
                         else (self.first, self.last))
        self.default = found.get('default')
        self.ignorable = 'ignorable' in found
        self.plain_length = found.get('flexible') == 'none'

    def is_pointer(self):
        return self.struct is not None and not self.array and self.null is not None

    def minimum_bytes(self, version, flexible):
        flexible = flexible and not self.plain_length
        if self.array:
            return 1 if flexible else 4
        if self.is_pointer():
            return 1
        if self.struct:
            return self.struct.minimum_bytes(version)
        return TYPES[self.base][3 if flexible else 2]

    def c_type(self):
        return f'struct {self.struct.c}' if self.struct else TYPES[self.base][0]

    def default_text(self):
        """The initialiser of the field in a message nobody has touched."""
        null = self.default == 'null'
        if self.array:
            return [f'.{self.c}_count = -1'] if null else []
        if self.is_pointer():
            return [] if null else [f'.{self.c} = (struct {self.struct.c} *)(uintptr_t)'
                                    f'&{self.struct.c}_default']
        if self.struct:
            inner = self.struct.default_texts()
            return [f'.{self.c} = {{{", ".join(inner)}}}'] if inner else []
        if self.base in ('string', 'bytes'):
            if null:
                return []
            text = self.default or ''
            return [f'.{self.c} = {{(const uint8_t *)"{text}", {len(text)}}}']
        if self.default is None or null or self.base == 'records':
            return []
        if self.base == 'int64':
            value = int(self.default)
            return [f'.{self.c} = ' + ('INT64_MIN' if value == -2 ** 63 else f'INT64_C({value})')]
        if self.base == 'int32' and int(self.default) == -2 ** 31:
            return [f'.{self.c} = INT32_MIN']
        return [f'.{self.c} = {self.default}']


def struct_default_texts(self):
    return [text for field in self.fields for text in field.default_text()]


Struct.default_texts = struct_default_texts


class Schemas:
    """Everything read from the schema folder."""

    def __init__(self, folder):
        self.folder, self.files, self.apis = folder, {}, {}
        for path in inputs(folder):
            if path.endswith('.schema'):
                self.files[header_name(path)] = self.read(os.path.join(folder, path))
        self.messages = [m for name in sorted(self.files) for m in self.files[name]]
        self.check()

    def read(self, path):
        messages, stack, api = [], [], None
        with open(path, encoding='utf-8') as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.lstrip().startswith('#'):
                    continue
                try:
                    words, depth = line.split(), (len(line) - len(line.lstrip(' '))) // 2
                    if words[0] == 'api' and depth == 0:
                        api = {'name': words[2], 'enum': words[3]}
                        self.apis[int(words[1])] = api
                    elif depth == 0:
                        stack = [self.message(words, api)]
                        messages.append(stack[0])
                    else:
                        self.field(words, depth, stack)
                except Exception as error:  # any mistake is reported at its line
                    raise SystemExit(f'{path}:{number}: {error!r}: {line.rstrip()}')
        return messages

    @staticmethod
    def message(words, api):
        if words[0] not in KINDS:
            raise ValueError('unknown kind')
        message = Message(words[0], words[1], version_range(words[2], None), words[3:])
        if words[0] in ('request', 'response'):
            api[words[0]] = message
        return message

    @staticmethod
    def field(words, depth, stack):
        message = stack[0]
        if words[0] == 'struct':
            struct = Struct(message, words[1], version_range(words[2], message.last))
            if words[1] in message.structs:
                raise ValueError('struct named twice')
            message.structs[words[1]] = struct
            stack[:] = [message, struct]
            return
        field = Field(words, message)
        del stack[depth:]
        stack[depth - 1].fields.append(field)
        if field.base not in TYPES:
            if field.base not in message.structs:
                message.structs[field.base] = Struct(message, field.base,
                                                     (field.first, field.last))
            field.struct = message.structs[field.base]
            stack.append(field.struct)

    def check(self):
        names = set()
        for message in self.messages:
            for struct in message.ordered_structs():
                if struct.c in names:
                    raise SystemExit(f'two structs are called {struct.c}')
                names.add(struct.c)
                members = [field.c for field in struct.fields]
                members += [field.c + '_count' for field in struct.fields if field.array]
                if len(set(members)) != len(members):
                    raise SystemExit(f'two fields of {struct.c} have one name')
                if struct is not message and not struct.fields:
                    raise SystemExit(f'{struct.c} has no fields')
                for field in struct.fields:
                    self.check_field(struct, field)

    @staticmethod
    def check_field(struct, field):
        for version in range(field.first, field.last + 1):
            flexible = struct.message.is_flexible(version)
            if field.tag is not None and not flexible:
                raise SystemExit(f'{struct.c}.{field.c}: tag in a plain version')
            if field.tag is not None and holds_records(field):
                raise SystemExit(f'{struct.c}.{field.c}: records may leave gaps, which tags move')
            if field.array and field.struct and field.struct.minimum_bytes(version) == 0:
                raise SystemExit(f'{struct.c}.{field.c}: elements without bytes')


def holds_records(field):
    if field.struct:
        return any(holds_records(inner) for inner in field.struct.fields)
    return field.base == 'records'


def header_name(path):
    """messages/produce.h for api-000-Produce.schema."""
    stem = os.path.basename(path)[:-len('.schema')]
    stem = re.sub(r'^api-\d+-', '', stem)
    return snake(stem).replace('-', '_') + '.h'


def inputs(folder):
    return sorted(name for name in os.listdir(folder)
                  if name.endswith(('.schema', '.txt', '.tsv')))


def outputs(folder):
    names = [header_name(name) for name in inputs(folder)
             if name.endswith('.schema') and name != 'api-removed.schema']
    return sorted(names) + ['api_keys.h', 'errors.h', 'messages.c']


def header(source, guard, includes, body):
    lines = [f'/* Generated by protocol/generate.py from {source}; changes go there. */',
             f'#ifndef OTTLA_MESSAGES_{guard}', f'#define OTTLA_MESSAGES_{guard}', '']
    lines += [f'#include {name}' for name in includes] + [''] + body + ['', '#endif', '']
    return '\n'.join(lines)


def struct_lines(struct):
    lines = [f'struct {struct.c} {{']
    for field in struct.fields:
        note = f'  /* {field.first}-{field.last} */'
        if field.array:
            lines += [f'    {field.c_type()} *{field.c};{note}', f'    int32_t {field.c}_count;']
        else:
            star = '*' if field.is_pointer() else ''
            lines += [f'    {field.c_type()} {star}{field.c};{note}']
    if not struct.fields:
        lines.append('    char nothing;  /* C has no empty structs */')
    return lines + ['};', '']


def message_header(name, messages):
    body = []
    for message in messages:
        for struct in message.ordered_structs():
            body += struct_lines(struct)
        body += [f'extern const struct {struct.c} {struct.c}_default;'
                 for struct in message.ordered_structs()]
        body += [f'extern const struct message_type {message.c}_type;', '']
    return header('protocol/schemas', name[:-2].upper() + '_H',
                  ['<stdbool.h>', '<stdint.h>', '', '"base/uuid.h"', '"base/view.h"',
                   '"protocol/descriptor.h"'], body[:-1]).replace('#include \n', '\n')


def field_line(struct, field):
    flags = [flag for flag, on in (('FIELD_ARRAY', field.array),
                                   ('FIELD_POINTER', field.is_pointer()),
                                   ('FIELD_IGNORABLE', field.ignorable),
                                   ('FIELD_PLAIN_LENGTH', field.plain_length)) if on]
    kind = 'FIELD_STRUCT' if field.struct else TYPES[field.base][1]
    inner = f'&{field.struct.c}_struct' if field.struct else 'NULL'
    null = field.null or (1, 0)
    return (f'    {{"{field.name}", {inner}, offsetof(struct {struct.c}, {field.c}), {kind}, '
            f'{" | ".join(flags) or 0}, {field.first}, {field.last}, {null[0]}, {null[1]}, '
            f'{-1 if field.tag is None else field.tag}}},')


def struct_table(struct):
    plain, tagged = struct.ordered()
    lines = []
    for field in plain + tagged:
        if field.array:
            lines.append(f'_Static_assert(offsetof(struct {struct.c}, {field.c}_count) == '
                         f'offsetof(struct {struct.c}, {field.c}) + sizeof(void *), "count");')
    if plain or tagged:
        lines.append(f'static const struct message_field {struct.c}_fields[] = {{')
        lines += [field_line(struct, field) for field in plain + tagged] + ['};']
    defaults = ', '.join(struct.default_texts()) or '0'
    lines.append(f'const struct {struct.c} {struct.c}_default = {{{defaults}}};')
    message = struct.message
    sizes = [struct.minimum_bytes(version) if message.first <= version else 0
             for version in range(message.last + 1)]
    lines.append(f'static const uint16_t {struct.c}_minimum[] = {{{", ".join(map(str, sizes))}}};')
    fields = f'{struct.c}_fields' if plain or tagged else 'NULL'
    lines += [f'static const struct message_struct {struct.c}_struct = {{',
              f'    "{struct.name}", {fields}, &{struct.c}_default, {struct.c}_minimum,',
              f'    sizeof(struct {struct.c}), {len(plain)}, {len(plain) + len(tagged)}}};', '']
    return lines


def message_table(message, ids):
    lines = []
    for struct in message.ordered_structs():
        lines += struct_table(struct)
    flexible = 'INT16_MAX' if message.flexible_from is None else message.flexible_from
    number = ids.get(message.name, message.id)
    return lines + [f'const struct message_type {message.c}_type = {{',
                    f'    "{message.name}", &{message.c}_struct, MESSAGE_{message.kind.upper()},',
                    f'    {message.first}, {message.last}, {flexible}, {number}}};', '']


def read_rows(path):
    with open(path, encoding='utf-8') as file:
        return [line.rstrip('\n') for line in file if line.strip() and not line.startswith('#')]


def read_errors(folder):
    rows = [line.split() for line in read_rows(os.path.join(folder, 'errors.txt'))]
    return [(int(row[0]), row[1], row[2:]) for row in rows]


def errors_header(folder):
    errors = read_errors(folder)
    body = ['/* What an answer may say went wrong. */', 'enum kafka_error {']
    body += [f'    KAFKA_{name} = {code},' for code, name, _ in errors]
    body += ['};', '', '/* The name of an error code ("NOT_LEADER_OR_FOLLOWER"); never null. */',
             'const char *kafka_error_name(int code);', '',
             '/* Whether a stock client may send again after this error. */',
             'bool kafka_error_is_retriable(int code);']
    return header('errors.txt', 'ERRORS_H', ['<stdbool.h>'], body)


def errors_table(folder):
    errors = read_errors(folder)
    lines = ['const char *kafka_error_name(int code)', '{', '    switch (code) {']
    lines += [f'    case {code}: return "{name}";' for code, name, _ in errors]
    lines += ['    default: return "UNKNOWN";', '    }', '}', '',
              'bool kafka_error_is_retriable(int code)', '{', '    switch (code) {']
    lines += [f'    case {code}:' for code, _, flags in errors if 'retriable' in flags]
    return lines + ['        return true;', '    default:', '        return false;', '    }', '}',
                    '']


# Keys from here on are Ottla's own, for what its nodes say to each other.
PRIVATE_FIRST = 1000


def api_keys_header(apis):
    body = ['/* The API keys of requests, those that are gone among them. */', 'enum api_key {']
    body += [f'    API_{apis[key]["enum"]} = {key},' for key in sorted(apis)]
    count = max(key for key in apis if key < PRIVATE_FIRST) + 1
    private_count = max(apis) + 1 - PRIVATE_FIRST
    body += ['};', '', '/* Keys below API_KEY_COUNT are Kafka\'s; private ones stand apart. */',
             f'enum {{ API_KEY_COUNT = {count}, API_PRIVATE_FIRST = {PRIVATE_FIRST}, '
             f'API_PRIVATE_COUNT = {private_count} }};']
    return header('the api lines', 'API_KEYS_H', [], body).replace('\n\n\n', '\n\n')


# The stock broker shows these two only when a telemetry receiver is plugged in.
HIDDEN_KEYS = (71, 72)


def api_line(row, api):
    key, enum, name, forwardable, cluster_action, listeners = row[:6]
    request, response = api['request'], api['response']
    if (enum, name) != (api['enum'], api['name']):
        raise SystemExit(f'apis.tsv and schemas differ for key {key}')
    for text in row[15].split():
        version, headers = text.split(':')
        want = (f'{2 if request.is_flexible(int(version)) else 1}/'
                f'{1 if response.is_flexible(int(version)) and name != "ApiVersions" else 0}')
        if headers != want:
            raise SystemExit(f'{name} {version}: headers {headers}, not {want}')
    advertised = row[9].split('-')
    if 'broker' not in listeners.split(',') or int(key) in HIDDEN_KEYS:
        advertised = ('-1', '-1')
    flags = [flag for flag, on in (('API_ON_BROKER', 'broker' in listeners),
                                   ('API_ON_CONTROLLER', 'controller' in listeners),
                                   ('API_FORWARDABLE', forwardable == 'true'),
                                   ('API_CLUSTER_ACTION', cluster_action == 'true')) if on]
    return (f'    [{key}] = {{"{name}", &{request.c}_type, &{response.c}_type, {key}, '
            f'{request.first}, {request.last}, {advertised[0]}, {advertised[1]}, '
            f'{" | ".join(flags)}}},')


def api_table(folder, apis):
    lines = ['const struct api api_table[API_KEY_COUNT] = {']
    for line in read_rows(os.path.join(folder, 'apis.tsv')):
        row = line.split('\t')
        if 'request' in apis[int(row[0])]:
            lines.append(api_line(row, apis[int(row[0])]))
    return lines + ['};', ''] + private_table(apis)


def private_table(apis):
    lines = ['const struct api api_private_table[API_PRIVATE_COUNT] = {']
    for key in sorted(key for key in apis if key >= PRIVATE_FIRST):
        request, response = apis[key]['request'], apis[key]['response']
        lines.append(f'    [{key - PRIVATE_FIRST}] = {{"{apis[key]["name"]}", &{request.c}_type, '
                     f'&{response.c}_type, {key}, {request.first}, {request.last}, -1, -1, '
                     'API_CLUSTER_ACTION},')
    return lines + ['};', '']


def tables(schemas, names):
    lines = ['/* Generated by protocol/generate.py from protocol/schemas; changes go there. */',
             '#include <stddef.h>', '', '#include "protocol/api_table.h"']
    lines += [f'#include "messages/{name}"' for name in names if name.endswith('.h')] + ['']
    ids = {}
    for key, api in schemas.apis.items():
        for part in ('request', 'response'):
            if part in api:
                ids[api[part].name] = key
    for message in schemas.messages:
        lines += message_table(message, ids)
    lines.append('const struct message_type *const message_types[] = {')
    lines += [f'    &{message.c}_type,' for message in schemas.messages] + ['};', '']
    lines += [f'const size_t message_type_count = {len(schemas.messages)};', '']
    lines += api_table(schemas.folder, schemas.apis) + errors_table(schemas.folder)
    return '\n'.join(lines)


def write(folder, name, text):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        file.write(text)


def generate(folder, target):
    schemas, names = Schemas(folder), outputs(folder)
    for name in names:
        if name in schemas.files:
            write(target, name, message_header(name, schemas.files[name]))
    write(target, 'errors.h', errors_header(folder))
    write(target, 'api_keys.h', api_keys_header(schemas.apis))
    write(target, 'messages.c', tables(schemas, names))


def main():
    if sys.argv[1] == '--inputs':
        print('\n'.join(inputs(sys.argv[2])))
    elif sys.argv[1] == '--outputs':
        print('\n'.join(outputs(sys.argv[2])))
    else:
        generate(sys.argv[1], sys.argv[2])


main()
