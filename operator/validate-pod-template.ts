// A podTemplate is free-form in the schema, so that every field of a pod may be set; a typo in it would be dropped without a word. Here the
// names at its top levels are held against those of Kubernetes (core/v1 of 1.35: PodTemplateSpec, PodSpec, Container).

const podSpecFields: readonly string[] =
  `activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks ephemeralContainers
  hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os overhead
  preemptionPolicy priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName
  schedulingGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
  terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef`.split(/\s+/)

const containerFields: readonly string[] =
  `args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources restartPolicy
  restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices
  volumeMounts workingDir`.split(/\s+/)

/** What the operator decides: a template that had them would break the job or be overruled without a word. */
const ours: Readonly<Record<string, string>> = {
  restartPolicy: 'the pods of a workload always restart',
  serviceAccountName: 'use spec.serviceAccountName',
  serviceAccount: 'use spec.serviceAccountName',
  ephemeralContainers: 'they are for kubectl debug',
  activeDeadlineSeconds: 'the job would be killed by it',
}

export function podTemplateProblems(path: string, template: Readonly<Record<string, unknown>> | undefined): string[] {
  if (template === undefined) return []
  const { metadata, spec } = template
  return [
    ...unknownNames(path, template, ['metadata', 'spec']),
    ...objectProblems(`${path}.metadata`, metadata, (object) => [
      ...unknownNames(`${path}.metadata`, object, ['labels', 'annotations']),
      ...['labels', 'annotations'].flatMap((name) => textProblems(`${path}.metadata.${name}`, object[name])),
    ]),
    ...objectProblems(`${path}.spec`, spec, (object) => podSpecProblems(`${path}.spec`, object)),
  ]
}

function podSpecProblems(path: string, spec: Readonly<Record<string, unknown>>): string[] {
  const decided = Object.entries(ours).flatMap(([name, instead]) =>
    spec[name] !== undefined ? [`${path}.${name} cannot be set: ${instead}.`] : [],
  )
  return [
    ...unknownNames(path, spec, podSpecFields),
    ...decided,
    ...['containers', 'initContainers'].flatMap((name) => containerProblems(`${path}.${name}`, spec[name])),
    ...['volumes', 'imagePullSecrets', 'tolerations', 'topologySpreadConstraints'].flatMap((name) =>
      listProblems(`${path}.${name}`, spec[name], (where, entry) => {
        const needsName = name === 'volumes' || name === 'imagePullSecrets'
        return needsName ? nameProblems(where, entry) : []
      }),
    ),
    ...objectProblems(`${path}.nodeSelector`, spec['nodeSelector'], (labels) =>
      textProblems(`${path}.nodeSelector`, labels),
    ),
  ]
}

function containerProblems(path: string, containers: unknown): string[] {
  return listProblems(path, containers, (where, container) => [
    ...nameProblems(where, container),
    ...unknownNames(where, container, containerFields),
  ])
}

/** Lists are merged by name. */
function nameProblems(where: string, entry: Readonly<Record<string, unknown>>): string[] {
  const { name } = entry
  return typeof name === 'string' && name !== '' ? [] : [`${where}.name is missing; entries are merged by it.`]
}

function listProblems(
  path: string,
  list: unknown,
  check: (where: string, entry: Readonly<Record<string, unknown>>) => string[],
): string[] {
  if (list === undefined) return []
  if (!Array.isArray(list)) return [`${path} must be a list.`]
  return list.flatMap((entry: unknown, index) => {
    const where = `${path}[${index}]`
    return objectProblems(where, entry ?? null, (object) => check(where, object))
  })
}

function objectProblems(
  path: string,
  value: unknown,
  check: (object: Readonly<Record<string, unknown>>) => string[],
): string[] {
  if (value === undefined) return []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} must be an object.`]
  return check(value as Readonly<Record<string, unknown>>)
}

function textProblems(path: string, value: unknown): string[] {
  return objectProblems(path, value, (object) =>
    Object.entries(object).flatMap(([name, text]) =>
      typeof text === 'string'
        ? []
        : [`${path}.${name} is ${JSON.stringify(text)}; it must be a text: put it in quotes.`],
    ),
  )
}

function unknownNames(path: string, object: Readonly<Record<string, unknown>>, known: readonly string[]): string[] {
  return Object.keys(object)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = nearest(name, known)
      return `${path}.${name}: there is no such field${near === undefined ? '' : `; perhaps ${near} is meant`}.`
    })
}

/** The known name that is at most two edits away (Levenshtein). */
function nearest(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((other) => ({ other, edits: editsBetween(name.toLowerCase(), other.toLowerCase()) }))
    .sort((left, right) => left.edits - right.edits)
  return best !== undefined && best.edits <= 2 ? best.other : undefined
}

function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let at = 1; at <= from.length; at++) {
    const next = [at]
    for (let place = 1; place <= to.length; place++) {
      const change = row[place - 1]! + (from[at - 1] === to[place - 1] ? 0 : 1)
      next.push(Math.min(change, row[place]! + 1, next[place - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
