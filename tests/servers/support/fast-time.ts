// For node --import: the process's monotonic clock and timers run `times` as fast, as its query says (fast-time.ts?times=10). Wall time stays as
// it is, and so do deadlines of single requests, which node itself keeps.

const times = Number(new URL(import.meta.url).searchParams.get('times') ?? 1)
const realNow = performance.now.bind(performance)
const realTimeout = globalThis.setTimeout
const realInterval = globalThis.setInterval

type Start = (callback: () => void, ms?: number) => NodeJS.Timeout
const faster =
  (start: Start): Start =>
  (callback, ms = 0) =>
    start(callback, ms / times)

performance.now = () => realNow() * times
globalThis.setTimeout = faster(realTimeout) as typeof setTimeout
globalThis.setInterval = faster(realInterval)
