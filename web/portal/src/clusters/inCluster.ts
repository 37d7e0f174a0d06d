// The page's gateway, as pages of one of its clusters ask it: all of them are still told on the page's one stream.

import type { Kubecast, KubeObject, Resource, Source } from '@kubecast/sdk';

interface Within {
  readonly all: Kubecast;
  readonly cluster: string;
}

const withins = new WeakMap<Kubecast, Within>();
const made = new WeakMap<Kubecast, Map<string, Kubecast>>();

/** The cluster of which a page asks; undefined: the default one. */
export const clusterOf = (kc: Kubecast): string | undefined => withins.get(kc)?.cluster;

/** Paths that are of one cluster, and where in them its name stands. */
const ofCluster = /^(\/history|\/logs)?(?=\/(?:apis?|openapi|queues|version)(?:[/?]|$))/;

/** Asks the same of another cluster; the empty one is the default one. Always the same for the same. */
export function inCluster(of: Kubecast, cluster: string): Kubecast {
  const kc = withins.get(of)?.all ?? of;
  if (cluster === '') return kc;
  const known = made.get(kc) ?? new Map<string, Kubecast>();
  made.set(kc, known);
  const before = known.get(cluster);
  if (before) return before;
  const at = (path: string): string => path.replace(ofCluster, `$&/clusters/${encodeURIComponent(cluster)}`);
  const own: Partial<Kubecast> = {
    watch: ((resource: Resource<KubeObject>, query?: object) => kc.watch(resource, { ...query, cluster })) as Kubecast['watch'],
    follow: <T, More>(source: Source<T, More>) => kc.follow({ ...source, path: at(source.path) }),
    request: (path, init, read) => kc.request(at(path), init, read),
  };
  const within = new Proxy(kc, {
    get: (target, name) => {
      const value: unknown = Reflect.get(name in own ? own : target, name);
      // What it keeps to itself it finds in itself only.
      return typeof value === 'function' ? (value as (...given: unknown[]) => unknown).bind(target) : value;
    },
  });
  known.set(cluster, within);
  withins.set(within, { all: kc, cluster });
  return within;
}
