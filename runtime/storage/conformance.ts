// Holds every object store, HEAD store and file system to the text of contract.ts. Each claim runs on a fresh place:
//   for (const { claim, holds } of objectStoreClaims) it(claim, () => holds(makeStore))

export { fileSystemClaims } from './conformance-files.ts'
export { headStoreClaims } from './conformance-head.ts'
export { objectStoreClaims } from './conformance-objects.ts'
