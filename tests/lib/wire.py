"""Kafka's wire protocol for tests: requests as dictionaries, encoded from protocol/schemas.

    c = Conn("127.0.0.1:9092")
    c.call("Metadata", 12, topics=None)["topics"]

Fields that are not given take the schema's default; uuids, bytes and records are bytes. The codec
is written from the notation's description alone and shares nothing with the product's, so that the
two check each other. batch() and read_batches() make and read record batches of format 2.

Failure modes: EOFError when the broker closes the connection, ValueError for bytes that do not
follow the schema, socket.timeout when no answer comes.
"""
import glob
import gzip
import os
import socket
import struct
import time

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "protocol",
                       "schemas")
FIXED = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
         "int64": "q", "float64": "d"}
PLAIN = {*FIXED, "uuid", "string", "bytes", "records"}


# ---- schemas
class Field:
    def __init__(self, words, message):
        self.name, kind = words[:2]
        self.array = kind.startswith("[]")
        self.kind = kind[2:] if self.array else kind
        self.versions = span(words[2], message.top)
        marks = dict(word.partition("=")[::2] for word in words[3:])
        self.tag = int(marks["tag"]) if "tag" in marks else None
        self.null = None
        if "null" in marks:
            self.null = span(marks["null"], message.top) if marks["null"] else self.versions
        self.default = marks.get("default")
        self.rigid = marks.get("flexible") == "none"
        self.struct = None

    def nullable(self, version):
        return self.null is not None and self.null[0] <= version <= self.null[1]

    def zero(self, version):
        """The value of a field that was not given."""
        if self.default == "null":
            return None
        if self.array:
            return []
        if self.struct is not None:
            return {}
        if self.kind == "string":
            return self.default or ""
        if self.kind in ("bytes", "records"):
            return b""
        if self.kind == "uuid":
            return bytes(16)
        return self.default == "true" if self.kind == "bool" else int(self.default or 0)


class Message:
    def __init__(self, words, api):
        self.api, self.name = api, words[1]
        self.lowest, self.top = span(words[2], 0)
        marks = dict(word.partition("=")[::2] for word in words[3:])
        self.flexible_from = span(marks["flexible"], self.top) or (self.top + 1,)
        self.fields, self.structs = [], {}

    def flexible(self, version):
        return version >= self.flexible_from[0]


def span(text, top):
    """(lowest, highest) of '4-18', '12+', '3' or 'none'."""
    if text == "none":
        return None
    if text.endswith("+"):
        return int(text[:-1]), top
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def read_schema(path, messages):
    api, message, stack = None, None, []
    with open(path) as lines:
        for line in lines:
            words, depth = line.split(), (len(line) - len(line.lstrip(" "))) // 2
            if not words or words[0].startswith("#"):
                continue
            if depth == 0 and words[0] == "api":
                api = int(words[1])
            elif depth == 0:
                message = Message(words, api)
                messages[message.name] = message
                stack = [message.fields]
            elif words[0] == "struct":
                stack = [message.fields, message.structs.setdefault(words[1], [])]
            else:
                field = Field(words, message)
                del stack[depth:]
                stack[depth - 1].append(field)
                if field.kind not in PLAIN:
                    field.struct = message.structs.setdefault(field.kind, [])
                    stack.append(field.struct)


def load():
    messages = {}
    for path in glob.glob(os.path.join(SCHEMAS, "*.schema")):
        read_schema(path, messages)
    return messages


MESSAGES = load()


# ---- encoding
def varint(number):
    """Unsigned, seven bits a byte."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number):
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def length(count, flexible, code):
    return varint(count + 1) if flexible else struct.pack(">" + code, count)


def encode_one(value, field, version, flexible):
    if field.kind in FIXED:
        return struct.pack(">" + FIXED[field.kind], value)
    if field.kind == "uuid":
        return value
    if field.struct is not None:
        return encode_fields(value, field.struct, version, flexible)
    code, flexible = "h" if field.kind == "string" else "i", flexible and not field.rigid
    if value is None:
        return length(-1, flexible, code)
    data = value.encode() if isinstance(value, str) else value
    return length(len(data), flexible, code) + data


def encode_field(value, field, version, flexible):
    if field.array:
        if value is None:
            return length(-1, flexible, "i")
        return length(len(value), flexible, "i") + b"".join(
            encode_one(item, field, version, flexible) for item in value)
    if field.struct is not None and field.nullable(version):
        return b"\xff" if value is None else b"\x01" + encode_one(value, field, version, flexible)
    return encode_one(value, field, version, flexible)


def encode_fields(values, fields, version, flexible):
    out, tags = b"", {}
    unknown = set(values) - {field.name for field in fields}
    assert not unknown, "no such field: %s" % unknown
    for field in fields:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        if field.tag is None:
            value = values[field.name] if field.name in values else field.zero(version)
            out += encode_field(value, field, version, flexible)
        elif field.name in values:
            tags[field.tag] = encode_field(values[field.name], field, version, flexible)
    if flexible:
        out += varint(len(tags))
        for tag in sorted(tags):
            out += varint(tag) + varint(len(tags[tag])) + tags[tag]
    return out


# ---- decoding
class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("%d bytes wanted at %d of %d" % (count, self.at, len(self.data)))
        self.at += count
        return self.data[self.at - count:self.at]

    def fixed(self, code):
        return struct.unpack(">" + code, self.take(struct.calcsize(">" + code)))[0]

    def varint(self):
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def zigzag(self):
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def length(self, field, version, flexible, code):
        count = self.varint() - 1 if flexible else self.fixed(code)
        if count < 0 and not field.nullable(version):
            raise ValueError("%s is null" % field.name)
        return count

    def one(self, field, version, flexible):
        if field.kind in FIXED:
            return self.fixed(FIXED[field.kind])
        if field.kind == "uuid":
            return self.take(16)
        if field.struct is not None:
            return self.fields(field.struct, version, flexible)
        code = "h" if field.kind == "string" else "i"
        count = self.length(field, version, flexible and not field.rigid, code)
        if count < 0:
            return None
        return self.take(count).decode() if field.kind == "string" else self.take(count)

    def field(self, field, version, flexible):
        if field.array:
            count = self.length(field, version, flexible, "i")
            return None if count < 0 else [self.one(field, version, flexible)
                                           for _ in range(count)]
        if field.struct is not None and field.nullable(version) and self.fixed("b") < 0:
            return None
        return self.one(field, version, flexible)

    def fields(self, fields, version, flexible):
        out, tagged = {}, {}
        for field in fields:
            if field.versions[0] <= version <= field.versions[1]:
                if field.tag is None:
                    out[field.name] = self.field(field, version, flexible)
                else:
                    tagged[field.tag] = field
                    out[field.name] = field.zero(version)
        if flexible:
            for _ in range(self.varint()):
                tag, part = self.varint(), Reader(self.take(self.varint()))
                if tag in tagged:
                    out[tagged[tag].name] = part.field(tagged[tag], version, flexible)
                    part.end()
        return out

    def end(self):
        if self.at != len(self.data):
            raise ValueError("%d bytes left over" % (len(self.data) - self.at))


def decode_answer(name, version, data):
    """A response's body; header included or not is the caller's affair."""
    message, reader = MESSAGES[name + "Response"], Reader(data)
    out = reader.fields(message.fields, version, message.flexible(version))
    reader.end()
    return out


# ---- connection
class Conn:
    """A connection to one broker; requests are answered in order."""

    def __init__(self, bootstrap, timeout_s=15, client_id="field"):
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.client_id, self.correlation = client_id, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send_raw(self, data):
        self.socket.sendall(struct.pack(">i", len(data)) + data)

    def send_body(self, key, version, body, flexible):
        """A request whose body is given as bytes."""
        self.correlation += 1
        name = self.client_id.encode()
        self.send_raw(struct.pack(">hhih", key, version, self.correlation, len(name)) + name +
                      (b"\0" if flexible else b"") + body)
        return self.correlation

    def send(self, name, version, **values):
        message = MESSAGES[name + "Request"]
        body = encode_fields(values, message.fields, version, message.flexible(version))
        return self.send_body(message.api, version, body, message.flexible(version))

    def receive_raw(self):
        size = struct.unpack(">i", self.exactly(4))[0]
        return self.exactly(size)

    def receive(self, name, version):
        data = self.receive_raw()
        message = MESSAGES[name + "Response"]
        assert struct.unpack(">i", data[:4])[0] == self.correlation, "answers in order"
        start = 4
        if message.flexible(version) and name != "ApiVersions":
            assert data[4] == 0, "no tags in the response header"
            start = 5
        return decode_answer(name, version, data[start:])

    def call(self, name, version, **values):
        self.send(name, version, **values)
        return self.receive(name, version)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("the broker closed the connection")
            data += more
        return data


# ---- record batches
def crc32c_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


CRC = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def sized(data):
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def record(index, value, key, delta_ms, headers):
    body = b"\0" + zigzag(delta_ms) + zigzag(index) + sized(key) + sized(value)
    body += zigzag(len(headers))
    for name, content in headers:
        body += sized(name.encode()) + sized(content)
    return zigzag(len(body)) + body


def batch(values, times=None, key=None, headers=(), producer=(-1, -1, -1), codec=0, compress=None,
          base_offset=0):
    """A record batch; producer is (id, epoch, first sequence), compress is applied to the records.

    codec: 0 none, 1 gzip (made here), others need compress.
    """
    now = int(time.time() * 1000)
    times = times or [now] * len(values)
    body = b"".join(record(i, value, key, times[i] - times[0], headers)
                    for i, value in enumerate(values))
    if codec:
        body = (compress or gzip.compress)(body)
    tail = struct.pack(">hiqqqhii", codec, len(values) - 1, times[0], max(times), *producer,
                       len(values)) + body
    head = struct.pack(">ibI", -1, 2, crc32c(tail))
    return struct.pack(">qi", base_offset, len(head) + len(tail)) + head + tail


def read_records(data, count, base_offset, base_time):
    reader, out = Reader(data), []
    for _ in range(count):
        reader.zigzag()
        reader.take(1)
        time_ms, offset = base_time + reader.zigzag(), base_offset + reader.zigzag()
        parts = []
        for _ in range(2):
            size = reader.zigzag()
            parts.append(None if size < 0 else reader.take(size))
        headers = []
        for _ in range(reader.zigzag()):
            name, size = reader.take(reader.zigzag()).decode(), reader.zigzag()
            headers.append((name, None if size < 0 else reader.take(size)))
        out.append({"offset": offset, "time": time_ms, "key": parts[0], "value": parts[1],
                    "headers": headers})
    return out


def read_batches(data):
    """The whole batches in a Fetch answer's records; a part of one at the end is left out."""
    out, at = [], 0
    while data is not None and len(data) - at >= 61:
        base_offset, size = struct.unpack(">qi", data[at:at + 12])
        if len(data) - at - 12 < size:
            break
        one = data[at:at + 12 + size]
        epoch, magic, crc = struct.unpack(">ibI", one[12:21])
        fields = struct.unpack(">hiqqqhii", one[21:61])
        names = ("attributes", "last_delta", "base_time", "max_time", "producer_id",
                 "producer_epoch", "sequence", "count")
        found = dict(zip(names, fields), base_offset=base_offset, epoch=epoch, magic=magic,
                     crc_ok=crc == crc32c(one[21:]), bytes=one)
        body, codec = one[61:], found["attributes"] & 7
        if codec <= 1:
            found["records"] = read_records(gzip.decompress(body) if codec else body,
                                            found["count"], base_offset, found["base_time"])
        out.append(found)
        at += 12 + size
    return out
