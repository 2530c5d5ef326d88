// Channels over NATS against channels between threads (distributed/channels.ts).

export { run } from './distributed/channels.ts'
