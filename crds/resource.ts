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

/** A storage address or path. */
export const path = z.string().min(1)
