// Runs the data plane with other limits than runtime/network/limits.ts has, in this thread, for what is loaded after it. The
// product has no switch for them: they were chosen by this measurement.

import { registerHooks } from 'node:module'

export type Limits = Readonly<Partial<Record<'FRAME_BYTES_MAX' | 'WINDOW_BYTES_MAX', number>>>

export function overrideLimits(limits: Limits): void {
  if (Object.keys(limits).length === 0) return
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      return url.endsWith('/runtime/network/limits.ts')
        ? { ...loaded, source: replaced(textOf(loaded.source)) }
        : loaded
    },
  })

  function replaced(source: string): string {
    return Object.entries(limits).reduce((text, [name, value]) => {
      const line = new RegExp(`^export const ${name} = .*$`, 'm')
      if (!line.test(text)) throw new Error(`limits.ts has no ${name}`)
      return text.replace(line, `export const ${name} = ${value}`)
    }, source)
  }
}

function textOf(source: string | ArrayBuffer | NodeJS.TypedArray | undefined): string {
  return typeof source === 'string' ? source : new TextDecoder().decode(source)
}
