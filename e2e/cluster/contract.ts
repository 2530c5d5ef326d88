// What scenarios and figures know of a cluster, whoever provides it.

import type { RunOptions, RunResult } from './run.ts'

/** What not every cluster lets its user do. */
export interface Abilities {
  /** killNode, startNode, killContainer. */
  readonly kill: boolean
}

export interface NodeFacts {
  readonly name: string
  readonly ready: boolean
  readonly controlPlane: boolean
  /** True after a drain or cordon. */
  readonly unschedulable: boolean
}

export interface UpOptions {
  /** Use the cluster that an earlier run kept, if it answers. */
  readonly reuse: boolean
}

export interface Forward {
  /** On this machine's loopback. */
  readonly port: number
  /** http://127.0.0.1:<port> */
  readonly url: string
  close(): Promise<void>
}

export interface ForwardOptions {
  readonly namespace: string
  /** As kubectl port-forward takes it: pod/x, svc/x, deploy/x. */
  readonly target: string
  readonly port: number
}

export interface ContainerOptions {
  readonly namespace: string
  readonly pod: string
  /** Default: the first. */
  readonly container?: string
}

export interface Cluster {
  readonly provider: 'kind' | 'existing'
  /** Path; for `kubectl --kubeconfig` too, while the cluster is up. */
  readonly kubeconfig: string
  readonly can: Abilities
  /** Resolves when all nodes are Ready and DNS answers. Removes first what a killed run left. */
  up(options?: UpOptions): Promise<void>
  /** Ends everything that `up` started; idempotent. */
  down(): Promise<void>
  /** As `down`, of what an earlier run left. Resolves to whether there was anything. Rejects while another run uses it. */
  downKept(): Promise<boolean>
  /** Puts the images of a docker archive onto every node; pods need imagePullPolicy IfNotPresent or Never. */
  loadImage(archive: string): Promise<void>
  kubectl(args: readonly string[], options?: RunOptions): Promise<RunResult>
  /** `kubectl … -o json`, parsed. */
  get<Value>(args: readonly string[]): Promise<Value>
  /** Objects (as JSON) or YAML by `kubectl apply --server-side`. */
  apply(manifest: string | readonly object[], options?: { readonly namespace?: string }): Promise<void>
  helm(args: readonly string[], options?: RunOptions): Promise<RunResult>
  nodes(): Promise<NodeFacts[]>
  /** The node with its kubelet and containers is gone at once, as in a power cut. */
  killNode(name: string): Promise<void>
  /** A killed node comes back; resolves when it is Ready. */
  startNode(name: string): Promise<void>
  /** kill -9 of a container's first process, from the node. Resolves when the signal is sent. */
  killContainer(options: ContainerOptions): Promise<void>
  /** A new namespace; its name begins with the prefix. */
  makeNamespace(prefix: string): Promise<string>
  /** Resolves when it is gone with all in it. */
  removeNamespace(name: string, deadlineMs?: number): Promise<void>
  /** A way to a port in the cluster that comes back when its pod is replaced. */
  forward(options: ForwardOptions): Promise<Forward>
  /**
   * Writes what the cluster knows of a scenario into a folder of its name and returns the folder: events, objects (no Secrets) and the logs of all
   * containers, also of their life before, of these namespaces; nodes. Never rejects: what could not be had is named in a file.
   */
  collect(scenario: string, namespaces: readonly string[]): Promise<string>
}
