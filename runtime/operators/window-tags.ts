// Tags of a window's timers: what they are for, and where the window begins.

import type { WindowAssigner } from './window-assigner.ts'
import { allTime } from './window-assigner.ts'

export type WindowTimerPurpose = 'trigger' | 'end' | 'clear'

export function windowTag(assigner: WindowAssigner, purpose: WindowTimerPurpose, startMs: number): string {
  return assigner.kind === 'global' ? purpose : `${purpose} ${startMs}`
}

export function ofWindowTag(
  assigner: WindowAssigner,
  tag: string,
): { readonly purpose: WindowTimerPurpose; readonly startMs: number } {
  const [purpose, start] = tag.split(' ') as [WindowTimerPurpose, string]
  return { purpose, startMs: assigner.kind === 'global' ? allTime.startMs : Number(start) }
}
