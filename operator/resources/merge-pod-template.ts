// A user's podTemplate over ours: objects field by field, lists of named things by name, all else replaced. null takes a field away. Its form
// was checked before (operator/validate-pod-template.ts).

type Json = Readonly<Record<string, unknown>>

/** What tells the entries of these lists apart, as in Kubernetes' own strategic merge. Other lists are replaced. */
const keysOfLists: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  volumes: ['name'],
  imagePullSecrets: ['name'],
  env: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  ports: ['containerPort', 'protocol'],
  tolerations: ['key', 'effect'],
  topologySpreadConstraints: ['topologyKey'],
  hostAliases: ['ip'],
}

/** One of several forms each: the fields of two would contradict each other. */
const wholeEntries: ReadonlySet<string> = new Set(['volumes', 'env'])
const wholeObjects: ReadonlySet<string> = new Set(['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'])

/** Labels of ours stay as they are: pods are selected by them. */
export function mergePodTemplate(ours: Json, theirs: Json | undefined): Json {
  if (theirs === undefined) return ours
  const merged = mergeObjects(ours, theirs)
  const metadata = { ...(ours['metadata'] as Json), ...(merged['metadata'] as Json | undefined) }
  const labels = { ...(metadata['labels'] as Json | undefined), ...((ours['metadata'] as Json)['labels'] as Json) }
  return { ...merged, metadata: { ...metadata, labels } }
}

function mergeObjects(ours: Json, theirs: Json): Json {
  const merged: Record<string, unknown> = { ...ours }
  for (const [name, value] of Object.entries(theirs)) {
    if (value === null) delete merged[name]
    else merged[name] = mergeField(name, ours[name], value)
  }
  return merged
}

function mergeField(name: string, ours: unknown, theirs: unknown): unknown {
  if (Array.isArray(ours) && Array.isArray(theirs) && keysOfLists[name] !== undefined)
    return mergeLists(name, ours as Json[], theirs as Json[])
  return isObject(ours) && isObject(theirs) && !wholeObjects.has(name) ? mergeObjects(ours, theirs) : theirs
}

function mergeLists(name: string, ours: readonly Json[], theirs: readonly Json[]): Json[] {
  const merged = new Map(ours.map((entry) => [entryKey(name, entry), entry]))
  for (const entry of theirs) {
    const key = entryKey(name, entry)
    const before = merged.get(key)
    merged.set(key, before === undefined || wholeEntries.has(name) ? entry : mergeObjects(before, entry))
  }
  return [...merged.values()]
}

/** Of an entry of a list under this name; undefined: the list's entries have no key. */
export function entryKeyOf(list: string, entry: Json): string | undefined {
  return keysOfLists[list] === undefined ? undefined : entryKey(list, entry)
}

function entryKey(list: string, entry: Json): string {
  return JSON.stringify(keysOfLists[list]!.map((name) => entry[name] ?? keyDefaults[name] ?? null))
}

const keyDefaults: Json = { protocol: 'TCP' }

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
