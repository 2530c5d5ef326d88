// The webhook's certificate: the leader makes and renews it, keeps it in a Secret, and tells the API server its authority; every replica
// serves with it.

import { keptOrRenewed } from '../certificates.ts'
import type { HeldCertificates } from '../certificates.ts'
import type { KubeClient, KubeObject } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import { secretObject } from '../nats-access.ts'

export interface WebhookCertificateOptions {
  readonly client: Pick<KubeClient, 'get' | 'apply' | 'patch'>
  /** The operator's own. */
  readonly namespace: string
  readonly names: { readonly configuration: string; readonly service: string; readonly secret: string }
  readonly wallMs: () => number
}

const keys = {
  authority: 'ca.crt',
  authorityKey: 'ca.key',
  certificate: 'tls.crt',
  certificateKey: 'tls.key',
} as const

/** What is to be served with now; undefined: no leader has made it yet. */
export async function webhookCertificate(
  options: WebhookCertificateOptions,
  leads: boolean,
): Promise<HeldCertificates | undefined> {
  const { client, namespace, names, wallMs } = options
  const secret = await client.get(types.secret, { namespace, name: names.secret })
  const held = heldIn(secret)
  if (!leads) return held
  const host = `${names.service}.${namespace}.svc`
  const current = await keptOrRenewed(held, { name: 'millrace webhook', hosts: [host], nowMs: wallMs() })
  if (current !== held) await write(options, secret, current)
  await tellAuthority(options, current.authority)
  return current
}

function heldIn(secret: KubeObject | undefined): HeldCertificates | undefined {
  const data = secret?.['data'] as Readonly<Record<string, string>> | undefined
  const text = (key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString()
  const held = {
    authority: text(keys.authority),
    authorityKey: text(keys.authorityKey),
    certificate: text(keys.certificate),
    certificateKey: text(keys.certificateKey),
  }
  return Object.values(held).includes('') ? undefined : held
}

async function write(
  { client, namespace, names }: WebhookCertificateOptions,
  before: KubeObject | undefined,
  held: HeldCertificates,
): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(keys).map(([name, key]) => [key, Buffer.from(held[name as keyof typeof keys]).toString('base64')]),
  )
  const object = secretObject(namespace, names.secret, data)
  const { uid, resourceVersion } = before?.metadata ?? {}
  // Of two that think they lead one writes it.
  await client.apply(
    types.secret,
    before === undefined
      ? object
      : { ...object, metadata: { ...object.metadata, uid: uid!, resourceVersion: resourceVersion! } },
    { force: true },
  )
}

interface Webhook {
  readonly clientConfig: { readonly caBundle?: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

/** The chart leaves it out. A webhook that is not installed is none. */
async function tellAuthority({ client, names }: WebhookCertificateOptions, authority: string): Promise<void> {
  const found = await client.get(types.validatingWebhook, { name: names.configuration })
  if (found === undefined) return
  const caBundle = Buffer.from(authority).toString('base64')
  const webhooks = (found['webhooks'] ?? []) as readonly Webhook[]
  if (webhooks.every(({ clientConfig }) => clientConfig.caBundle === caBundle)) return
  const { uid, resourceVersion } = found.metadata
  await client.patch(
    types.validatingWebhook,
    { name: names.configuration },
    {
      metadata: { uid, resourceVersion },
      webhooks: webhooks.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } })),
    },
  )
}
