// What is watched of a table that the page has all of.

import type { Kubecast, KubeObject, Watch } from '@kubecast/sdk';
import { jobs, pods } from '../job/resources.ts';
import { jobFields } from '../jobs/fields.ts';
import { podFields } from '../pods/fields.ts';
import type { TableName } from '../view/view.ts';

/** No more of an object than is shown. An empty namespace is all of them. The same watch for the same table and namespace, as long as somebody looks at it. */
export function watchOf(kc: Kubecast, table: TableName, namespace: string): Watch<KubeObject> {
  const query = { namespace, fields: table === 'jobs' ? jobFields : podFields, deltas: true };
  return kc.watch<KubeObject>(table === 'jobs' ? jobs : pods, query);
}
