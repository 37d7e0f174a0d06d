// What every object says of itself: since when it is there, what it belongs to, its labels.

import type { KubeObject } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { timeOf } from '../jobs/job.ts';
import { kindNamed, useKinds } from '../kinds/discovery.ts';
import { linkToObject, type View } from '../view/view.ts';
import { t } from './texts.ts';

/** Links to what an object belongs to, as far as such things are served. */
export function Owners({ object, view }: { object: KubeObject; view: View }): ReactNode {
  const { data: kinds } = useKinds();
  const { ownerReferences = [], namespace = '' } = object.metadata;
  return (
    <span className="fact-list" translate="no">
      {ownerReferences.map(({ apiVersion, kind, name, uid }) => {
        const found = kindNamed(kinds, apiVersion, kind);
        const words = `${kind} ${name}`;
        return found ? (
          <a key={uid} href={linkToObject(found.id, found.namespaced ? namespace : '', name, view)}>
            {words}
          </a>
        ) : (
          <span key={uid}>{words}</span>
        );
      })}
    </span>
  );
}

export function Labels({ object }: { object: KubeObject }): ReactNode {
  const labels = Object.entries(object.metadata.labels ?? {});
  if (labels.length === 0) return null;
  return (
    <>
      <h2>{t.labels}</h2>
      <ul className="labels" translate="no">
        {labels.map(([key, value]) => (
          <li key={key}>{value ? `${key}=${value}` : key}</li>
        ))}
      </ul>
    </>
  );
}

/** The facts that stand last, of whatever kind. */
export function commonFacts(object: KubeObject, view: View): (readonly [string, ReactNode] | false)[] {
  const { creationTimestamp, deletionTimestamp, ownerReferences = [] } = object.metadata;
  return [
    ownerReferences.length > 0 && [t.ownedBy, <Owners key="owners" object={object} view={view} />],
    [t.created, <Age key="created" since={timeOf(creationTimestamp)} in={t.ago} />],
    deletionTimestamp !== undefined && [t.deleted, <Age key="deleted" since={timeOf(deletionTimestamp)} in={t.ago} />],
  ];
}
