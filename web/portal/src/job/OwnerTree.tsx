// What a job belongs to, up to the topmost, what let it in, and its pods below.

import { answerTo, pastSpec, pathOf, type Kubecast, type KubeObject, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { kindNamed, useKinds, type Kind } from '../kinds/discovery.ts';
import type { PodRow } from '../pods/pod.ts';
import { useReading } from '../polling/polling.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { formatView, linkToObject, type View } from '../view/view.ts';
import { livesOf } from './lives.ts';
import { jobs } from './resources.ts';
import { t } from './texts.ts';

/** An object of the tree; undefined `id`: the cluster serves no such kind that the user may see. */
interface Owner {
  readonly uid: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  readonly id: string | undefined;
}

interface Above {
  /** The topmost first. */
  readonly owners: readonly Owner[];
  /** Kueue's, which let one of them in. */
  readonly workloads: readonly Owner[];
}

/** Nothing is nested deeper; owners could also be a circle. */
const deepest = 8;
/** So many pods stand there; all are told where pods are. */
const most = 8;

async function ownersOf(kc: Kubecast, kinds: readonly Kind[], namespace: string, object: KubeObject): Promise<Owner[]> {
  const owners: Owner[] = [];
  for (let at: KubeObject | undefined = object; at && owners.length < deepest; ) {
    const refs: NonNullable<KubeObject['metadata']['ownerReferences']> = at.metadata.ownerReferences ?? [];
    const ref = refs.find(({ controller }) => controller) ?? refs[0];
    if (!ref) break;
    const kind = kindNamed(kinds, ref.apiVersion, ref.kind);
    const within = kind?.namespaced === false ? '' : namespace;
    owners.unshift({ uid: ref.uid, kind: ref.kind, name: ref.name, namespace: within, id: kind?.id });
    if (!kind) break;
    // One that is gone, that may not be seen, or that has only the name, says nothing of what is above it.
    const found: KubeObject | undefined = await answerTo(kc, pathOf(kind, { namespace: within, name: ref.name, fields: ['metadata.ownerReferences'] })).catch(() => undefined) as KubeObject | undefined;
    at = found?.metadata?.uid === ref.uid ? found : undefined;
  }
  return owners;
}

async function workloadsOf(kc: Kubecast, kinds: readonly Kind[], namespace: string, uids: readonly string[]): Promise<readonly Owner[]> {
  const kind = kinds.find(({ id }) => id === 'workloads.kueue.x-k8s.io');
  if (!kind) return [];
  const path = pathOf(kind, { namespace, labels: `kueue.x-k8s.io/job-uid in (${uids.join()})`, fields: ['metadata.labels'] });
  const { items = [] } = (await answerTo(kc, path).catch(() => ({}))) as { readonly items?: readonly KubeObject[] };
  return items.map(({ metadata }) => ({ uid: metadata.uid, kind: kind.kind, name: metadata.name, namespace, id: kind.id }));
}

interface OwnerTreeProps {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The object, if it is there. */
  readonly job: KubeObject | undefined;
  readonly past: PastJob | undefined;
  readonly pods: readonly PodRow[];
  readonly view: View;
}

/** Nothing, if it belongs to nothing and nothing let it in: its pods have a place of their own. */
export function OwnerTree({ namespace, name, uid, job, past, pods, view }: OwnerTreeProps): ReactNode {
  const kc = useKubecast();
  const { data: kinds } = useKinds();
  const owned = job?.metadata.ownerReferences?.map((one) => one.uid).join();
  const kept = Boolean(past?.spec);
  const queued = Boolean(past?.queue) || job?.metadata.labels?.['kueue.x-k8s.io/queue-name'] !== undefined;
  const there = job !== undefined;
  const read = useMemo(
    () => async (): Promise<Above | undefined> => {
      if (!kinds) return undefined;
      const object = there ? job : kept ? await pastSpec(kc, jobs, { namespace, name, uid }) : undefined;
      const owners = object ? await ownersOf(kc, kinds, namespace, object) : [];
      const workloads = queued && /^[\w-]+$/.test(uid) ? await workloadsOf(kc, kinds, namespace, [uid, ...owners.map((one) => one.uid)]) : [];
      return { owners, workloads };
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- of the object only its owners count
    [kc, kinds, namespace, name, uid, there, owned, kept, queued],
  );
  const above = useReading(read, undefined).data;
  if (!above || above.owners.length + above.workloads.length === 0) return null;
  const lives = livesOf(pods, past?.pods ?? []);
  const own = (
    <ul>
      {above.workloads.map((one) => (
        <li key={one.uid}>
          <OwnerLink owner={one} view={view} />
        </li>
      ))}
      {lives.slice(0, most).map((pod) => (
        <li key={pod.uid} translate="no">
          <StateIcon state={pod.state} /> Pod {pod.there ? <a href={linkToObject('pods', namespace, pod.name, view)}>{pod.name}</a> : pod.name}
        </li>
      ))}
      {lives.length > most && (
        <li>
          <a href={formatView({ ...view, tab: 'pods' })}>{t.tree.more(lives.length - most)}</a>
        </li>
      )}
    </ul>
  );
  const self = (
    <ul>
      <li aria-current="true">
        <span translate="no">
          Job <b>{name}</b>
        </span>
        {own}
      </li>
    </ul>
  );
  return (
    <section aria-label={t.tree.title} className="job-tree">
      <h2>{t.tree.title}</h2>
      {above.owners.reduceRight<ReactNode>(
        (below, one) => (
          <ul>
            <li>
              <OwnerLink owner={one} view={view} />
              {below}
            </li>
          </ul>
        ),
        self,
      )}
    </section>
  );
}

function OwnerLink({ owner: { kind, name, namespace, id }, view }: { readonly owner: Owner; readonly view: View }): ReactNode {
  return (
    <span translate="no">
      {kind} {id === undefined ? name : <a href={linkToObject(id, namespace, name, view)}>{name}</a>}
    </span>
  );
}
