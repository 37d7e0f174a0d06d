import type { KubeObject, WatchStatus } from '@kubecast/sdk';
import { useEffect, useState, type ReactNode } from 'react';
import { changedLines, withoutNoise } from './yaml.ts';
import { t } from './texts.ts';

interface Shown {
  readonly object: KubeObject;
  readonly lines: readonly string[];
  /** Those that the last change has brought. */
  readonly changed: ReadonlySet<number>;
}

/** The whole object, with what its last change has brought marked. */
export function Yaml({ object, status }: { object: KubeObject | undefined; status: WatchStatus }): ReactNode {
  const [shown, setShown] = useState<Shown>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!object) return undefined;
    let over = false;
    // Of use here only, so it is fetched here only.
    import('yaml').then(
      ({ stringify }) => {
        if (over) return;
        const lines = stringify(withoutNoise(object), { lineWidth: 0 }).trimEnd().split('\n');
        setShown((before) => {
          if (before?.object === object) return before;
          const same = before?.object.metadata.uid === object.metadata.uid;
          return { object, lines, changed: same && before ? changedLines(before.lines, lines) : new Set() };
        });
      },
      () => !over && setFailed(true),
    );
    return () => {
      over = true;
    };
  }, [object]);
  if (!object) return <p className="job-none">{nothing(status)}</p>;
  if (failed) return <p className="job-none">{t.yaml.notLoaded}</p>;
  if (!shown) return <p className="job-none">{t.loading}</p>;
  return (
    <pre className="job-scroller yaml" translate="no" tabIndex={0}>
      {shown.lines.map((line, n) => (
        <div key={n} className={shown.changed.has(n) ? 'yaml-changed' : undefined}>
          {line || ' '}
        </div>
      ))}
    </pre>
  );
}

function nothing(status: WatchStatus): string {
  if (status === 'loading') return t.loading;
  return status === 'denied' || status === 'closed' ? t.yaml.denied : t.yaml.none;
}
