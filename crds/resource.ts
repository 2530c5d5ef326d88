// What every object of the API has, and the shapes that several kinds share.

import { z } from 'zod'

export const API_VERSION = 'millrace.dev/v1alpha1'

/** A name within a namespace (RFC 1123 subdomain). */
export const resourceName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, {
    error: ({ input }) =>
      `is ${JSON.stringify(input)}; a name is small letters, digits, - and ., with a letter or digit at both ends`,
  })

/** A namespace (RFC 1123 label). */
export const namespaceName = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, {
    error: ({ input }) =>
      `is ${JSON.stringify(input)}; a namespace is small letters, digits and -, with a letter or digit at both ends`,
  })

/** Kubernetes checks the rest of it. */
export const metadata = z.looseObject({ name: resourceName, namespace: namespaceName.optional() })

/** Whoever raises it asks for something once; one that is there at creation asks for nothing. */
export const nonce = z.int().nonnegative()

/** Of a container. */
export const imageName = z.string().regex(/^\S+$/, {
  error: ({ input }) => `is ${JSON.stringify(input)}; an image's name is not empty and has no spaces`,
})

/** A storage address or path. */
export const path = z.string().min(1)

/**
 * The folder of a snapshot as a person names it, and as status shows it: in a bucket, or on a volume, with the scheme or without. Without a
 * backslash: CEL has it in a text of its own.
 */
export const SNAPSHOT_FOLDER = /^(s3:[/][/][^/ ]+[/][^ ]+|(file:[/][/])?[/][^ ]+)$/

export const logLevel = z.enum(['debug', 'info', 'warn', 'error'])

/** For a schema's meta data: what a refinement says, as the API server checks it (CEL). `message` begins as in problems.ts. */
export function celRule(rule: string, message: string): { readonly 'x-kubernetes-validations': readonly object[] } {
  return { 'x-kubernetes-validations': [{ rule, message }] }
}
