import { expect, it } from 'vitest'
import type { NatsSharing } from '../contract.ts'
import { testConfig } from '../harness/operator-world.ts'
import { natsSharing } from './cluster-facts.ts'
import { specOf } from './harness.ts'
import type { OperatorConfig } from './operator-config.ts'

const url = 'nats://nats:4222'
const shared = { kind: 'shared' } as const
const own = { kind: 'own server', keysSecret: 'keys', configSecret: 'config' } as const

it.each<[string, OperatorConfig['natsAccess'], string | undefined, Readonly<Record<string, string>>, NatsSharing]>([
  ['where the operator makes them are its own', own, undefined, { url }, 'own'],
  ['are none at an address of its own: anybody has these', own, undefined, { url: 'nats://other' }, 'shared'],
  ["are none at the chart's address: anybody has these", shared, undefined, { url }, 'shared'],
  ["are the chart's: all jobs have them", shared, 'nats', { url, credentialsSecret: 'nats' }, 'shared'],
  [
    'that its spec names are its own affair',
    shared,
    'nats',
    { url: 'nats://other', credentialsSecret: 'mine' },
    'unknown',
  ],
])('the credentials of a job for NATS %s', (_, natsAccess, credentialsSecret, nats, expected) => {
  const ofChart = { url, tls: false, ...(credentialsSecret !== undefined && { credentialsSecret }) }
  const config = { ...testConfig, natsAccess, defaults: { ...testConfig.defaults, nats: ofChart } }
  expect(natsSharing(specOf({ nats }), config)).toBe(expected)
})
