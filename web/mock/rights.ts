// Who may see what of the mock, and how they ask about it.

import { idOf, type MockKind } from './documents.ts';
import { BadQuery } from './query.ts';
import type { MockInbox } from './told.ts';

export interface MockUser {
  /** The namespaces that the user may see the content of, and not list; undefined: everything. */
  readonly namespaces?: readonly string[];
  /** The kinds of which the user may see anything, as `jobs.batch`; undefined: each. */
  readonly kinds?: readonly string[];
  /** The user may read logs; so it is if it is not said. */
  readonly logs?: boolean;
  /** If it is not said, what the token says of itself. */
  readonly username?: string;
  readonly groups?: readonly string[];
  /** When the token ends, in milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** The user's own notifications; if it is not said, those of the gateway. */
  readonly inbox?: MockInbox;
}

/** Whether the user may see something of a kind, in a namespace or anywhere. */
export function maySee({ namespaces, kinds }: Pick<MockUser, 'namespaces' | 'kinds'>, id: string, namespace?: string): boolean {
  if (kinds && !kinds.includes(id)) return false;
  if (namespaces === undefined) return true;
  return namespace ? namespaces.includes(namespace) : id !== 'namespaces' && namespaces.length > 0;
}

/** What `/auth/me` says. */
export function meOf(user: MockUser, username: string, asked: string | null, served: readonly MockKind[]): object {
  const ids = asked === null ? served.map(idOf).filter((id) => maySee(user, id)) : asked.split(',');
  if (ids.length > 50) throw new BadQuery('kinds: at most 50 can be asked about');
  const watch = ids.map((id) => {
    const [resource = '', ...group] = id.split('.');
    const all = user.namespaces === undefined && maySee(user, id);
    return { group: group.join('.'), resource, all, namespaces: !all && maySee(user, id) ? user.namespaces : [] };
  });
  const expiresAt = user.expiresAt === undefined ? null : new Date(user.expiresAt).toISOString();
  return { username, groups: user.groups ?? [], anonymous: false, expiresAt, clusters: [{ name: 'default', default: true, watch }] };
}

interface Review {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly spec?: { readonly resourceAttributes?: Readonly<Record<string, string | undefined>>; readonly nonResourceAttributes?: Readonly<Record<string, string | undefined>> };
}

/** A review of oneself, with its status. */
export function reviewed(review: Review, kind: string, user: MockUser, username: string, serves: (id: string) => boolean): object {
  if (review.kind !== undefined && review.kind !== kind) throw new BadQuery(`it is no ${kind}`);
  if (kind === 'SelfSubjectReview') return { ...review, kind, status: { userInfo: { username, groups: user.groups ?? [] } } };
  const { resourceAttributes: of, nonResourceAttributes: address } = review.spec ?? {};
  if ((of === undefined) === (address === undefined)) throw new BadQuery('spec: exactly one of nonResourceAttributes or resourceAttributes must be specified', 422);
  const reason = address ? (address.verb === 'get' ? '' : 'nothing is written through the gateway') : denial(of ?? {}, user, serves);
  return { ...review, status: { allowed: reason === '', ...(reason && { reason }) } };
}

const reviews = [['authorization.k8s.io', 'selfsubjectaccessreviews'], ['authorization.k8s.io', 'selfsubjectrulesreviews'], ['authentication.k8s.io', 'selfsubjectreviews']] as const;
const served = ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*', '/version', '/version/', '/healthz', '/livez', '/readyz'];

/** A rules review: what may be read in its namespace, kind by kind. */
export function rulesOf(review: Review & { readonly spec?: { readonly namespace?: string } }, user: MockUser, kinds: readonly MockKind[]): object {
  if (review.kind !== undefined && review.kind !== 'SelfSubjectRulesReview') throw new BadQuery('it is no SelfSubjectRulesReview');
  const namespace = review.spec?.namespace ?? '';
  if (namespace === '') throw new BadQuery('no namespace on request');
  const seen = kinds.filter((kind) => maySee(user, idOf(kind), namespace));
  const rules = [...new Set(seen.map(({ group }) => group))].map((group) => ({ verbs, apiGroups: [group], resources: seen.filter((kind) => kind.group === group).map(({ plural }) => plural) }));
  const logs = user.logs !== false && seen.some((kind) => idOf(kind) === 'pods') ? [{ verbs: ['get'], apiGroups: [''], resources: ['pods/log'] }] : [];
  const asking = reviews.map(([group, resource]) => ({ verbs: ['create'], apiGroups: [group], resources: [resource] }));
  return { ...review, kind: 'SelfSubjectRulesReview', status: { resourceRules: [...rules, ...logs, ...asking], nonResourceRules: served.map((path) => ({ verbs: ['get'], nonResourceURLs: [path] })), incomplete: false } };
}

const verbs = ['get', 'list', 'watch'];

/** Why something is not shown; empty: it is. */
function denial({ verb = '', group = '', resource = '', subresource = '', namespace = '' }: Readonly<Record<string, string | undefined>>, user: MockUser, serves: (id: string) => boolean): string {
  const id = group === '' ? resource : `${resource}.${group}`;
  if (!verbs.includes(verb)) return 'nothing is written through the gateway';
  const isLog = id === 'pods' && subresource === 'log' && verb === 'get';
  if (subresource !== '' && !isLog) return 'that is not served';
  if (!serves(id) || !maySee(user, id, namespace)) return 'nothing of it may be seen';
  return isLog && user.logs === false ? 'logs may not be read' : '';
}
