// Where in the user's file a stream was made, for errors: `examples/flights/job.ts:12`.

const runtimeFolder = new URL('..', import.meta.url).href
const ownTests = /\.test\.[jt]s$/

/** File and line of the nearest caller outside the runtime; 'unknown place' if the stack does not show one. */
export function callerLocation(): string {
  for (const line of (new Error('location').stack ?? '').split('\n').slice(1)) {
    const found = /(?:\(|at )([^()\s]+):(\d+):\d+\)?$/.exec(line)
    if (found === null) continue
    const [, file = '', row = ''] = found
    const url = file.startsWith('/') ? `file://${file}` : file
    if (url.startsWith('node:') || (url.startsWith(runtimeFolder) && !ownTests.test(url))) continue
    return `${file.replace(/^file:\/\//, '').replace(/\?.*$/, '')}:${row}`
  }
  return 'unknown place'
}
