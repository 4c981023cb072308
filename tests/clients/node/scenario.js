// What the Node.js clients share: the command line, the test data, and checks.
//
// usage of a client program: node PROGRAM BOOTSTRAP SCENARIO TAG [ARGUMENT..]
// Exit status 0 is a pass, 77 a skip with its reason as the last line, anything else a failure.
import assert from 'node:assert/strict'

export const bootstrap = process.argv[2]
export const big = 10 * 1000 * 1000
export const baseTime = 1600000000000 // of the records in offsets_by_time, plus 1000 per offset

export const numbered = (prefix, from, to) =>
  Array.from({ length: to - from }, (_, i) => prefix + (from + i))

export const matrixValues = (codec, count) =>
  numbered(codec + '-', 0, count).map(value => (value + '-').repeat(20))

export const codecOf = topic => topic.slice(topic.lastIndexOf('-') + 1)

export async function until (what, state, limitMs = 30000) {
  const end = Date.now() + limitMs
  while (!state()) {
    assert(Date.now() < end, `not within ${limitMs} ms: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

export async function main (scenarios) {
  const scenario = scenarios[process.argv[3]]
  if (!scenario) {
    console.log('no such scenario for this client: ' + process.argv[3])
    process.exit(77)
  }
  try {
    await scenario(...process.argv.slice(4))
  } catch (error) {
    console.log(error)
    console.log(String(error.message).split('\n').join(' '))
    process.exit(1)
  }
  console.log('ok')
  process.exit(0)
}
