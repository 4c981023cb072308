// kafkajs through every client scenario.
import assert from 'node:assert/strict'
import zlib from 'node:zlib'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import { lz4Compress, lz4Decompress } from '@platformatic/wasm-utils'
import { baseTime, big, bootstrap, codecOf, main, matrixValues, numbered, until } from './scenario.js'

const { CompressionCodecs, CompressionTypes, Kafka, Partitioners, logLevel } = kafkajs
const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(decompress(buffer))
})
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4Compress, lz4Decompress)
CompressionCodecs[CompressionTypes.ZSTD] = codec(zlib.zstdCompressSync, zlib.zstdDecompressSync)
const types = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

const kafka = new Kafka({ clientId: 'tests', brokers: [bootstrap], logLevel: logLevel.ERROR })
const admin = kafka.admin()

async function create (topic, partitions = 1) {
  await admin.connect()
  assert(await admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: 1 }] }))
  return topic
}

async function send (topic, messages, compression = 'none', options = {}) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...options })
  await producer.connect()
  const answer = await producer.send({ topic, messages, compression: types[compression], acks: -1 })
  assert(answer.every(part => part.errorCode === 0))
  await producer.disconnect()
}

const values = list => list.map(value => ({ value, partition: 0 }))
const text = messages => messages.map(message => message.value.toString())

// A member of a group: what it owns, what it got; commit says what to do with each message.
async function join (topic, groupId, { limit = Infinity, commit = true } = {}) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 300, maxWaitTimeInMs: 200 })
  const member = { consumer, owned: [], got: [] }
  consumer.on(consumer.events.GROUP_JOIN, event => { member.owned = event.payload.memberAssignment[topic] ?? [] })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (member.got.length >= limit) return
      member.got.push({ partition, ...message })
      if (commit) {
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
      }
    }
  })
  return member
}

// kafkajs reads only in groups.
async function read (topic, count) {
  const member = await join(topic, `${topic}-${process.pid}-${Date.now()}`, { limit: count, commit: false })
  await until(`${count} messages`, () => member.got.length === count)
  await member.consumer.disconnect()
  return member.got
}

async function produceConsume (tag) {
  const topic = await create(tag, 3)
  await send(topic, numbered('v', 0, 300).map((value, i) => ({ key: `k${i % 7}`, value, partition: i % 3 })))
  const got = await read(topic, 300)
  for (let partition = 0; partition < 3; partition++) {
    const mine = got.filter(message => message.partition === partition)
    assert.deepEqual(mine.map(message => Number(message.offset)), mine.map((_, i) => i))
    assert.deepEqual(text(mine), numbered('v', 0, 300).filter((_, i) => i % 3 === partition))
  }
}

async function compression (tag, name) {
  const topic = await create(tag)
  await send(topic, values(matrixValues(name, 200)), name)
  assert.deepEqual(text(await read(topic, 200)), matrixValues(name, 200))
}

async function sizes (tag) {
  const topic = await create(tag)
  const want = ['x', 'y'.repeat(big), 'z']
  await send(topic, values(want))
  assert.deepEqual(text(await read(topic, 3)), want)
}

async function headers (tag) {
  const topic = await create(tag)
  await send(topic, [
    { value: 'v', headers: { a: ['1', '2'], empty: '', '\u00fc': Buffer.from([0, 255]) } }, { value: 'w' }])
  const [first, second] = await read(topic, 2)
  const plain = Object.entries(first.headers).map(([key, value]) => [key, [value].flat().map(b => b.toString('hex'))])
  assert.deepEqual(plain, [['a', ['31', '32']], ['empty', ['']], ['\u00fc', ['00ff']]])
  assert.deepEqual(second.headers, {})
}

async function nulls (tag) {
  const topic = await create(tag)
  await send(topic, [{ value: 'v' }, { key: 'k', value: null }, { key: '', value: '' }])
  const got = (await read(topic, 3)).map(({ key, value }) => [key && key.toString(), value && value.toString()])
  assert.deepEqual(got, [[null, 'v'], ['k', null], ['', '']])
}

async function offsetsByTime (tag) {
  const topic = await create(tag)
  await send(topic, numbered('v', 0, 10).map((value, i) => ({ value, timestamp: String(baseTime + 1000 * i) })))
  for (const [after, want] of [[0, 0], [1, 1], [5000, 5], [8999, 9], [9001, 10]]) {
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, baseTime + after)
    assert.equal(Number(found.offset), want, `after ${after}`)
  }
  const [ends] = await admin.fetchTopicOffsets(topic)
  assert.deepEqual([ends.low, ends.high], ['0', '10'])
}

async function rebalance (tag) {
  const topic = await create(tag, 4)
  const first = await join(topic, tag)
  await until('the first owns all', () => first.owned.length === 4)
  const second = await join(topic, tag)
  await until('each owns half', () => first.owned.length === 2 && second.owned.length === 2)
  for (let partition = 0; partition < 4; partition++) {
    await send(topic, numbered(`${partition}-`, 0, 10).map(value => ({ value, partition })))
  }
  const all = () => text([...first.got, ...second.got])
  await until('40 records', () => all().length >= 40)
  await second.consumer.disconnect()
  await until('the first owns all again', () => first.owned.length === 4)
  await first.consumer.disconnect()
  assert.equal(all().length, 40)
  assert.equal(new Set(all()).size, 40)
}

async function committedWrite (tag) {
  const topic = await create(tag)
  await send(topic, values(numbered('v', 0, 20)))
  const member = await join(topic, tag, { limit: 7 })
  await until('7 messages', () => member.got.length === 7)
  await member.consumer.disconnect()
}

async function committedRead (tag) {
  await admin.connect()
  const [{ partitions: [{ offset }] }] = await admin.fetchOffsets({ groupId: tag, topics: [tag] })
  assert.equal(offset, '7')
  const member = await join(tag, tag)
  await until('13 messages', () => member.got.length === 13)
  await member.consumer.disconnect()
  assert.deepEqual(text(member.got), numbered('v', 7, 20))
}

// Many small batches of an idempotent producer, as case P2 asks.
async function idempotent (tag) {
  const topic = await create(tag)
  const producer = kafka.producer({ idempotent: true, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const want = numbered('v', 0, 500)
  await Promise.all(want.map(value => producer.send({ topic, messages: [{ value }] })))
  await producer.disconnect()
  assert.deepEqual(text(await read(topic, 500)).sort(), want.sort())
}

// Asking for an unknown topic's metadata fails and creates nothing (case M2).
async function describeUnknown (tag) {
  await admin.connect()
  await assert.rejects(admin.fetchTopicMetadata({ topics: [tag] }))
  assert(!(await admin.listTopics()).includes(tag), 'the topic was created')
}

// A record to a topic that is not there yet (case M2).
async function autoCreate (topic) {
  await send(topic, values(numbered('v', 0, 10)))
  assert.deepEqual(text(await read(topic, 10)), numbered('v', 0, 10))
}

const write = (tag, name) => send(tag, values(matrixValues(name, 50)), name)

async function readTopics (tag, ...topics) {
  for (const topic of topics) {
    assert.deepEqual(text(await read(topic, 50)), matrixValues(codecOf(topic), 50), topic)
  }
}

main({
  produce_consume: produceConsume, compression, sizes, headers, nulls, offsets_by_time: offsetsByTime,
  rebalance, committed_write: committedWrite, committed_read: committedRead, idempotent,
  describe_unknown: describeUnknown, auto_create: autoCreate, write, read: readTopics
})
