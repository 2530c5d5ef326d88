// The certificate library asks for the metadata API at its import, for decorators that none of what is used here has. Imported before it.

const reflect = Reflect as unknown as Record<string, unknown>
reflect['getMetadata'] ??= () => undefined
reflect['getOwnMetadata'] ??= () => undefined
reflect['defineMetadata'] ??= () => undefined
reflect['hasOwnMetadata'] ??= () => false
reflect['metadata'] ??= () => () => undefined
