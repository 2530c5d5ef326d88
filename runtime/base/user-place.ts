// Where in the user's files something was made or went wrong, for errors: `examples/flights/job.ts:12`.

const runtimeFolder = new URL('..', import.meta.url).href
const ownTests = /\.test\.[jt]s$/

/** Whether a module is neither the runtime's (its tests apart) nor a package's. */
export function isUserCode(url: string): boolean {
  const isOwn = url.startsWith(runtimeFolder) && !ownTests.test(url)
  return url.startsWith('file:') && !isOwn && !url.includes('/node_modules/')
}

/** File and line of the innermost frame of a stack that is neither the runtime's nor a package's; undefined if it shows none. */
export function placeInUserCode(stack: string | undefined): string | undefined {
  for (const line of (stack ?? '').split('\n')) {
    const found = /(?:\(|at )([^()\s]+):(\d+):\d+\)?$/.exec(line)
    if (found === null) continue
    const [, file = '', row = ''] = found
    const url = file.startsWith('/') ? `file://${file}` : file
    if (!isUserCode(url)) continue
    return `${file.replace(/^file:\/\//, '').replace(/\?.*$/, '')}:${row}`
  }
  return undefined
}
