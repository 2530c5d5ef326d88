// Inside a simulation nothing may reach around it: reading a real clock, real randomness, timers, files, sockets, threads and what
// the garbage collector decides throw here, and say what to use instead.

import { createRequire, syncBuiltinESMExports } from 'node:module'

const require = createRequire(import.meta.url)

/** Thrown at the place that reached around the simulation. */
export class GuardError extends Error {
  override readonly name = 'GuardError'
}

type Bag = Record<string, unknown>

/**
 * Puts the guard on for this thread, and returns what takes it off again. Load all modules before: loading one reads files.
 * Pure functions of the guarded modules (createHash, crc32, the synchronous zlib) stay. `onRefusal` hears of every refusal, also
 * of those that the code under test catches.
 */
export function installGuard(onRefusal: (message: string) => void = () => {}): () => void {
  const forbidden: Forbidden = (name, instead) =>
    function refuse(): never {
      const message = `${name} reaches around the simulation; use ${instead}.`
      onRefusal(message)
      throw new GuardError(message)
    }
  const undo: (() => void)[] = []
  const replace = (bag: object, name: string, value: unknown): void => {
    const before = Object.getOwnPropertyDescriptor(bag, name)
    if (before?.configurable === false && before.writable !== true) return
    if (before?.configurable === false) (bag as Bag)[name] = value
    else Object.defineProperty(bag, name, { configurable: true, writable: true, value })
    undo.push(() => {
      if (before === undefined) Reflect.deleteProperty(bag, name)
      else if (before.configurable === false) (bag as Bag)[name] = before.value
      else Object.defineProperty(bag, name, before)
    })
  }
  const forbid = (bag: object, where: string, names: readonly string[], instead: string): void => {
    for (const name of names) if (name in bag) replace(bag, name, forbidden(`${where}${name}`, instead))
  }

  replace(globalThis, 'Date', guardedDate(forbidden))
  forbidGlobals(forbid)
  replace(process.hrtime, 'bigint', forbidden('process.hrtime.bigint', clock))
  forbidModules(forbid)
  syncBuiltinESMExports()
  return () => {
    for (const each of undo.toReversed()) each()
    syncBuiltinESMExports()
  }
}

/** Makes a function that, called or constructed, refuses. */
type Forbidden = (name: string, instead: string) => () => never
type Forbid = (bag: object, where: string, names: readonly string[], instead: string) => void

const timers = ['setTimeout', 'setInterval', 'setImmediate']
const clock = 'environment.clock'
const random = 'environment.random'

function forbidGlobals(forbid: Forbid): void {
  forbid(performance, 'performance.', ['now', 'mark', 'measure'], clock)
  forbid(process, 'process.', ['hrtime', 'uptime', 'cpuUsage'], clock)
  forbid(globalThis, '', timers, `${clock} or environment.executor`)
  forbid(globalThis, '', ['fetch', 'WebSocket', 'EventSource', 'MessageChannel', 'BroadcastChannel'], 'a transport')
  forbid(globalThis, '', ['WeakRef', 'FinalizationRegistry'], 'a map whose entries somebody removes')
  forbid(Math, 'Math.', ['random'], random)
  forbid(globalThis.crypto, 'crypto.', ['getRandomValues', 'randomUUID'], random)
  forbid(Atomics, 'Atomics.', ['wait', 'waitAsync'], clock)
}

function forbidModules(forbid: Forbid): void {
  const { promises: files, ...fs } = require('node:fs') as Bag & { promises: Bag }
  forbid(require('node:fs') as object, 'fs.', functionsOf(fs), 'a FileSystem')
  forbid(files, 'fs.promises.', functionsOf(files), 'a FileSystem')
  forbid(require('node:timers') as object, 'timers.', timers, clock)
  forbid(require('node:timers/promises') as object, 'timers.', timers, clock)
  const randomOf = ['randomBytes', 'randomFill', 'randomFillSync', 'randomInt', 'randomUUID', 'getRandomValues']
  const keysOf = [
    'generateKey',
    'generateKeyPair',
    'generateKeySync',
    'generateKeyPairSync',
    'pbkdf2',
    'scrypt',
    'hkdf',
  ]
  forbid(require('node:crypto') as object, 'crypto.', [...randomOf, ...keysOf], random)
  const zlib = require('node:zlib') as Bag
  const compressions = functionsOf(zlib).filter((name) => `${name}Sync` in zlib || name.startsWith('create'))
  forbid(zlib, 'zlib.', compressions, 'its synchronous form')
  const net = require('node:net') as { Socket: { prototype: object }; Server: { prototype: object } }
  forbid(net.Socket.prototype, 'Socket.', ['connect'], 'a transport')
  forbid(net.Server.prototype, 'Server.', ['listen'], 'a transport')
  forbid(require('node:dgram') as object, 'dgram.', ['createSocket'], 'a transport')
  const dns = require('node:dns') as Bag
  forbid(dns, 'dns.', functionsOf(dns), 'a transport')
  forbid(require('node:worker_threads') as object, 'worker_threads.', ['Worker', 'MessageChannel'], 'a slot provider')
  const children = ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork']
  forbid(require('node:child_process') as object, 'child_process.', children, 'a slot provider')
}

/** A date of a given time is a pure value; only asking for the present one is refused. */
function guardedDate(forbidden: Forbidden): DateConstructor {
  const [now, construct, call] = [
    forbidden('Date.now', clock),
    forbidden('new Date()', clock),
    forbidden('Date()', clock),
  ]
  return new Proxy(Date, {
    construct: (target, given, newTarget): object =>
      given.length === 0 ? construct() : (Reflect.construct(target, given, newTarget) as object),
    apply: call,
    get: (target, name, receiver): unknown => (name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown)),
  })
}

function functionsOf(bag: Bag): string[] {
  return Object.keys(bag).filter((name) => typeof bag[name] === 'function')
}
