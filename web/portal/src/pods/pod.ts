// What a v1 Pod says of itself. Its state is what kubectl prints as STATUS, which the gateway derives; its phase is for what the portal decides by it.

import type { KubeObject } from '@kubecast/sdk';
import { timeOf, type Condition } from '../jobs/job.ts';
import { sentenceOf, shortOf, type ContainerEnd } from '../state/ended.ts';
import { ownerOf } from '../table/owner.ts';
import { t } from './texts.ts';

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: Terminated;
  };
  /** How it ended before it was started again. */
  readonly lastState?: { readonly terminated?: Terminated };
}

interface Terminated {
  readonly reason?: string;
  readonly exitCode?: number;
  readonly signal?: number;
  readonly message?: string;
  readonly finishedAt?: string;
}

export interface Pod extends KubeObject {
  /** What kubectl prints as STATUS. */
  readonly $status?: string;
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** As in the cluster, but that one whose container cannot be started, or is not started again yet, is waiting, and one that is being deleted is that. */
export type PodPhase = 'Failed' | 'Waiting' | 'Pending' | 'Running' | 'Succeeded' | 'Deleting' | 'Unknown';

export interface PodRow {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly owner: string;
  readonly job: string;
  readonly node: string;
  /** In kubectl's words, wherever it is shown. */
  readonly state: string;
  readonly phase: PodPhase;
  /** A word or two beside the state. */
  readonly detail: string;
  readonly message: string;
  readonly ready: number;
  readonly containers: number;
  /** How many containers have a log of their own: those that only begin the pod as well. */
  readonly logs: number;
  readonly restarts: number;
  readonly created: number;
  /** The end for which it failed, or was started again, or is not started any more; undefined: there was none. */
  readonly end?: ContainerEnd | undefined;
}

export function podRow(pod: Pod): PodRow {
  const { metadata, spec = {}, status = {} } = pod;
  const stated = phaseOf(pod);
  const end = endOf(pod);
  const state = pod.$status || status.phase || 'Unknown';
  const main = status.containerStatuses ?? [];
  const init = status.initContainerStatuses ?? [];
  // As kubectl counts, and the gateway with it: sidecars among those that go on, and the others that begin a pod only while they do.
  const beside = sidecarsOf(pod);
  const going = [...main, ...init.filter(({ name }) => beside.has(name))];
  const begun = init.length === 0 || (status.conditions ?? []).some(({ type, status: holds }) => type === 'Initialized' && holds === 'True');
  const mains = Math.max(spec.containers?.length ?? 0, main.length);
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  return {
    uid: metadata.uid,
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    owner: ownerOf(metadata),
    job: controller?.kind === 'Job' ? controller.name : (metadata.labels?.['batch.kubernetes.io/job-name'] ?? ''),
    node: spec.nodeName ?? '',
    state,
    ...stated,
    detail: detailOf(state, stated, end),
    ready: going.filter((container) => container.ready).length,
    containers: mains + beside.size,
    logs: mains + init.length,
    restarts: (begun ? going : init).reduce((sum, container) => sum + (container.restartCount ?? 0), 0),
    created: timeOf(metadata.creationTimestamp) ?? 0,
    end,
  };
}

function detailOf(state: string, { phase, detail }: Stated, end: ContainerEnd | undefined): string {
  // What the state says itself needs no second word.
  const isSaid = state.includes(detail) || (state !== phase && (detail === t.creating || detail === t.initialising));
  if (detail !== '' && !isSaid) return detail;
  // That it backs off is how the cluster takes it; why is how it ended.
  return phase === 'Waiting' && end ? shortOf(end) : '';
}

/** Why a pod failed, or why it is started again and again, in one sentence; empty: it did not, or nobody says so. */
export const whyOfPod = ({ end }: Pick<PodRow, 'end'>): string => (end ? sentenceOf(end) : '');

interface Stated {
  readonly phase: PodPhase;
  readonly detail: string;
  readonly message: string;
}

// Waiting reasons that are the way of things; any other needs somebody's attention.
const usualWaits = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** The names of the containers that begin a pod, and go on beside the others. */
const sidecarsOf = ({ spec }: Pick<Pod, 'spec'>): ReadonlySet<string> => new Set(spec?.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name));

type Ended = Terminated & { readonly container: string };

/** Of a pod that failed, that for which it did; else of a container that waits to be started again, or was, the last. */
function endOf(pod: Pod): ContainerEnd | undefined {
  const { status = {} } = pod;
  if (status.phase === 'Failed' && !status.reason) return failed(pod);
  // Whoever ended it knows better than its containers.
  if (status.phase === 'Failed' || status.phase === 'Succeeded') return undefined;
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap(({ name, state, lastState, restartCount }) =>
    lastState?.terminated ? [{ ...lastState.terminated, container: name, restarts: restartCount, waits: Number(!!state?.waiting && !usualWaits.has(state.waiting.reason ?? '')) }] : [],
  );
  return all.sort((a, b) => b.waits - a.waits || (timeOf(b.finishedAt) ?? 0) - (timeOf(a.finishedAt) ?? 0))[0];
}

/**
 * The container for which a pod failed: one that does its work before those that begin it, and these before sidecars, which the kubelet ends once the work is
 * over; of several the one that ended first. One that the kubelet could not find any more counts only if there is no other.
 */
function failed({ spec = {}, status = {} }: Pod): Ended | undefined {
  const sidecars = sidecarsOf({ spec });
  const ranked = [
    ...(status.containerStatuses ?? []).map((one) => ({ ...one, rank: 0 })),
    ...(status.initContainerStatuses ?? []).map((one) => ({ ...one, rank: sidecars.has(one.name) ? 2 : 1 })),
  ].flatMap(({ name, state, rank }) => {
    const end = state?.terminated;
    return end && end.exitCode !== 0 ? [{ end: { ...end, container: name }, rank, lost: Number(end.reason === 'ContainerStatusUnknown') }] : [];
  });
  ranked.sort((a, b) => a.lost - b.lost || a.rank - b.rank || (timeOf(a.end.finishedAt) ?? 0) - (timeOf(b.end.finishedAt) ?? 0));
  return ranked[0]?.end;
}

function phaseOf(pod: Pod): Stated {
  const { metadata, status = {} } = pod;
  const said = (phase: PodPhase, detail = '', message = ''): Stated => ({ phase, detail, message });
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  if (status.phase === 'Succeeded') return said('Succeeded');
  if (status.phase === 'Failed') {
    const culprit = failed(pod);
    const exit = culprit?.signal ? t.signal(culprit.signal) : culprit?.exitCode ? t.exitCode(culprit.exitCode) : '';
    const reason = status.reason ?? culprit?.reason ?? '';
    return said('Failed', reason === 'Error' && exit ? exit : reason || exit, status.message ?? culprit?.message);
  }
  if (metadata.deletionTimestamp) return said('Deleting');
  for (const { state } of containers) {
    const reason = state?.waiting?.reason ?? '';
    if (state?.waiting && !usualWaits.has(reason)) return said('Waiting', reason, state.waiting.message);
  }
  if (status.phase === 'Running') return said('Running');
  if (status.phase === 'Pending') {
    const unscheduled = status.conditions?.find(({ type, status: value }) => type === 'PodScheduled' && value === 'False');
    if (unscheduled) return said('Pending', unscheduled.reason === 'Unschedulable' ? t.unschedulable : (unscheduled.reason ?? ''), unscheduled.message);
    const waiting = containers.map(({ state }) => state?.waiting?.reason).find((reason) => reason);
    return said('Pending', waiting === 'ContainerCreating' ? t.creating : waiting === 'PodInitializing' ? t.initialising : '');
  }
  return said('Unknown', status.reason, status.message);
}
