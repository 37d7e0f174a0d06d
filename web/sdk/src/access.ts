// Who the caller is, and what they may do; see "Who is calling" and "Reviews of oneself" in wire.md.

import { answerTo, asked, type Asked } from './asked.ts';
import type { Kubecast } from './kubecast.ts';
import { readWatchable, texts, type Watchable } from './me.ts';
import { isJsonObject, listOf, text, type KubeObject } from './object.ts';
import type { Query, Resource } from './resource.ts';

/** Who the gateway takes the caller for. */
export interface Me {
  readonly username: string;
  readonly groups: readonly string[];
  readonly anonymous: boolean;
  /** When what the caller has signed in with ends, in milliseconds since the epoch; undefined: it does not. */
  readonly expiresAt: number | undefined;
  /** Of the kinds that were asked about, else of those that are cached: what may be watched where. */
  readonly clusters: readonly { readonly name: string; readonly default: boolean; readonly watch: readonly Watchable[] }[];
}

/** The caller; `kinds` such as `pods` and `jobs.batch`. */
export function meOf(kc: Kubecast, kinds: readonly string[] = []): Asked<Me> {
  const query = kinds.length > 0 ? `?${new URLSearchParams({ kinds: kinds.join() }).toString()}` : '';
  const path = `/auth/me${query}`;
  return asked(kc, path, async () => readMe(await answerTo(kc, path)));
}

function readMe(body: unknown): Me {
  const { username, groups, anonymous, expiresAt, clusters } = isJsonObject(body) ? body : {};
  const until = Date.parse(text(expiresAt));
  return {
    username: text(username),
    groups: texts(groups),
    anonymous: anonymous === true,
    expiresAt: Number.isNaN(until) ? undefined : until,
    clusters: listOf(clusters, (cluster) => ({
      name: text(cluster.name),
      default: cluster.default === true,
      watch: listOf(cluster.watch, readWatchable) ?? [],
    })) ?? [],
  };
}

/** Whether the gateway would show something. */
export interface Access {
  readonly allowed: boolean;
  /** The gateway's own words; may be empty. */
  readonly reason: string;
}

/** What the caller would do, and where; without a namespace everywhere. */
export interface AccessQuery extends Pick<Query, 'namespace' | 'name' | 'cluster'> {
  /** `watch` by default. Kubecast writes nothing, so it allows nothing else than `get`, `list` and `watch`. */
  readonly verb?: string | undefined;
  /** Such as `log`, of pods. */
  readonly subresource?: string | undefined;
}

/** Whether the gateway would show the caller that: a SelfSubjectAccessReview. */
export function accessOf(kc: Kubecast, { group, version, plural }: Resource<KubeObject>, query: AccessQuery = {}): Asked<Access> {
  const { namespace, name, cluster, verb = 'watch', subresource } = query;
  const path = `${cluster ? `/clusters/${encodeURIComponent(cluster)}` : ''}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`;
  const body = JSON.stringify({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { group, version, resource: plural, subresource, verb, namespace, name } },
  });
  return asked(kc, path + body, async () => {
    const answer = await answerTo(kc, path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    const { allowed, reason } = isJsonObject(answer) && isJsonObject(answer.status) ? answer.status : {};
    return { allowed: allowed === true, reason: text(reason) };
  });
}
