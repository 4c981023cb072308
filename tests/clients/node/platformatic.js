// @platformatic/kafka through every client scenario.
import assert from 'node:assert/strict'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { baseTime, big, bootstrap, codecOf, main, matrixValues, numbered, until } from './scenario.js'

const base = { clientId: 'tests', bootstrapBrokers: [bootstrap] }
const admin = new Admin(base)

async function create (topic, partitions = 1) {
  const [created] = await admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  assert.equal(created.name, topic)
  await leadersKnown(topic)
  return topic
}

// CreateTopics may answer before the leaders serve, and this client sends a whole batch again when
// one partition refuses it.
async function leadersKnown (topic) {
  const consumer = new Consumer({ ...base, groupId: topic + '-ready' })
  await consumer.listOffsets({ topics: [topic] })
  await consumer.close()
}

async function send (topic, messages, compression = 'none', options = {}) {
  const producer = new Producer({ ...base, compression, acks: -1, ...options })
  const list = messages.map(({ key, value, ...rest }) =>
    ({ topic, key: key === undefined ? undefined : Buffer.from(key), value: value && Buffer.from(value), ...rest }))
  await producer.send({ messages: list })
  await producer.close()
}

const values = list => list.map(value => ({ value, partition: 0 }))
const text = messages => messages.map(message => message.value.toString())

// A member of a group; it commits each message unless commit is false.
async function join (topic, groupId, { limit = Infinity, commit = true, mode = 'committed' } = {}) {
  const consumer = new Consumer({
    ...base, groupId, sessionTimeout: 6000, heartbeatInterval: 300, rebalanceTimeout: 10000, maxWaitTime: 200,
    maxBytes: 20000000
  })
  const member = { consumer, got: [], owned: () => consumer.assignments?.[0]?.partitions?.length ?? 0 }
  member.stream = await consumer.consume({ topics: [topic], mode, fallbackMode: 'earliest', autocommit: false })
  member.work = (async () => {
    for await (const message of member.stream) {
      if (member.got.length >= limit) continue
      member.got.push(message)
      if (commit) await message.commit()
    }
  })()
  member.leave = async () => {
    await member.stream.close()
    await member.work
    await consumer.close()
  }
  return member
}

async function read (topic, count) {
  const member = await join(topic, `${topic}-${process.pid}-${Date.now()}`, { commit: false, mode: 'earliest' })
  await until(`${count} messages`, () => member.got.length >= count)
  await member.leave()
  assert.equal(member.got.length, count)
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
  const want = new Map([['a', '1'], ['empty', ''], ['\u00fc', Buffer.from([0, 255])]].map(([key, value]) =>
    [Buffer.from(key), Buffer.from(value)]))
  await send(topic, [{ value: 'v', headers: want, partition: 0 }, { value: 'w', partition: 0 }])
  const [first, second] = await read(topic, 2)
  assert.deepEqual([...first.headers].map(([key, value]) => [key.toString(), value.toString('hex')]),
    [['a', '31'], ['empty', ''], ['\u00fc', '00ff']])
  assert.equal(second.headers.size, 0)
}

async function nulls (tag) {
  const topic = await create(tag)
  await send(topic, [{ value: 'v', partition: 0 }, { key: 'k', value: null, partition: 0 }])
  const got = (await read(topic, 2)).map(({ key, value }) => [key?.toString() ?? null, value?.toString() ?? null])
  assert.deepEqual(got, [[null, 'v'], ['k', null]])
}

async function offsetsByTime (tag) {
  const topic = await create(tag)
  await send(topic, numbered('v', 0, 10).map((value, i) => ({ value, timestamp: BigInt(baseTime + 1000 * i) })))
  const consumer = new Consumer({ ...base, groupId: tag })
  for (const [after, want] of [[0, 0n], [1, 1n], [5000, 5n], [8999, 9n]]) {
    const found = await consumer.listOffsetsWithTimestamps({ topics: [topic], timestamp: BigInt(baseTime + after) })
    assert.deepEqual(found.get(topic).get(0), { offset: want, timestamp: BigInt(baseTime) + 1000n * want })
  }
  const none = await consumer.listOffsets({ topics: [topic], timestamp: BigInt(baseTime + 9001) })
  assert.deepEqual(none.get(topic), [-1n])
  assert.deepEqual((await consumer.listOffsets({ topics: [topic], timestamp: -2n })).get(topic), [0n])
  assert.deepEqual((await consumer.listOffsets({ topics: [topic] })).get(topic), [10n])
  await consumer.close()
}

async function rebalance (tag) {
  const topic = await create(tag, 4)
  const first = await join(topic, tag)
  await until('the first owns all', () => first.owned() === 4)
  const second = await join(topic, tag)
  await until('each owns half', () => first.owned() === 2 && second.owned() === 2)
  for (let partition = 0; partition < 4; partition++) {
    await send(topic, numbered(`${partition}-`, 0, 10).map(value => ({ value, partition })))
  }
  const all = () => text([...first.got, ...second.got])
  await until('40 records', () => all().length >= 40)
  await second.leave()
  await until('the first owns all again', () => first.owned() === 4)
  await first.leave()
  // At least once: a fetch that waits in this client while it loses the partition still delivers.
  assert.equal(new Set(all()).size, 40)
}

async function committedWrite (tag) {
  const topic = await create(tag)
  await send(topic, values(numbered('v', 0, 20)))
  const member = await join(topic, tag, { limit: 7 })
  await until('7 messages', () => member.got.length === 7)
  await member.leave()
}

async function committedRead (tag) {
  const consumer = new Consumer({ ...base, groupId: tag })
  const offsets = await consumer.listCommittedOffsets({ topics: [{ topic: tag, partitions: [0] }] })
  assert.deepEqual(offsets.get(tag), [7n])
  await consumer.close()
  const member = await join(tag, tag)
  await until('13 messages', () => member.got.length >= 13)
  await member.leave()
  assert.deepEqual(text(member.got), numbered('v', 7, 20))
}

// Several topics and partitions in one Produce request, as case H7 asks.
async function manyPartitions (tag) {
  await create(tag + '-a', 6)
  await create(tag + '-b', 6)
  const producer = new Producer({ ...base, acks: -1 })
  const messages = numbered('v', 0, 120).map((value, i) =>
    ({ topic: i % 2 ? tag + '-a' : tag + '-b', partition: i % 6, value: Buffer.from(value) }))
  const { offsets } = await producer.send({ messages })
  await producer.close()
  assert.equal(offsets.length, 6)
  assert(offsets.every(({ offset }) => offset === 0n))
}

const write = (tag, name) => send(tag, values(matrixValues(name, 50)), name)

async function readTopics (tag, ...topics) {
  for (const topic of topics) {
    assert.deepEqual(text(await read(topic, 50)), matrixValues(codecOf(topic), 50), topic)
  }
}

main({
  produce_consume: produceConsume, compression, sizes, headers, nulls, offsets_by_time: offsetsByTime,
  rebalance, committed_write: committedWrite, committed_read: committedRead, many_partitions: manyPartitions,
  write, read: readTopics
})
