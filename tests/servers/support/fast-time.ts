// For node --import: the process's monotonic clock and timers run `times` as fast, as its query says (fast-time.ts?times=10). Wall time stays as
// it is, and so do deadlines of single requests, which node itself keeps.

const times = Number(new URL(import.meta.url).searchParams.get('times'))
if (!(times >= 1)) throw new Error(`${import.meta.url} does not say how many times as fast`)
const realNow = performance.now.bind(performance)
const realTimeout = globalThis.setTimeout
const realInterval = globalThis.setInterval

type Start = (callback: () => void, ms?: number, ...rest: []) => NodeJS.Timeout
/** With what else Node has put on it (its promise form stays as slow as it is). */
const faster = <S extends Start>(start: S): Start & S =>
  Object.assign<Start, S>((callback, ms = 0, ...rest) => start(callback, ms / times, ...rest), start)

performance.now = () => realNow() * times
globalThis.setTimeout = faster(realTimeout)
globalThis.setInterval = faster(realInterval)
