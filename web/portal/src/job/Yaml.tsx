import { isFinal, type KubeObject, pathOf, type Resource, type Status } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { exactAnswerTo, isRounded } from '../exact/exact.ts';
import { CopyButton } from './Copied.tsx';
import { asKubernetesReads, changedLines, withoutNoise } from './yaml.ts';
import { t } from './texts.ts';

interface Shown {
  readonly object: KubeObject;
  readonly lines: readonly string[];
  /** Those that the last change has brought. */
  readonly changed: ReadonlySet<number>;
}

/** The whole object, with what its last change has brought marked. */
export function Yaml({ object: told, status, of }: { object: KubeObject | undefined; status: Status; /** Where it is read again if it has numbers that a stream does not tell as they are. */ of?: Resource<KubeObject> }): ReactNode {
  const object = useExact(told, of);
  const [shown, setShown] = useState<Shown>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!object) return undefined;
    let over = false;
    // Of use here only, so it is fetched here only.
    import('yaml').then(
      ({ stringify }) => {
        if (over) return;
        const lines = stringify(withoutNoise(object), asKubernetesReads).trimEnd().split('\n');
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
  if (!object) return <p className="job-none">{told ? t.loading : nothing(status)}</p>;
  if (failed) return <p className="job-none">{t.yaml.notLoaded}</p>;
  if (!shown) return <p className="job-none">{t.loading}</p>;
  const text = `${shown.lines.join('\n')}\n`;
  const { namespace, name } = shown.object.metadata;
  const download = (): void => {
    // The page may be older than what the gateway has by now.
    import('../export/save.ts').then(
      ({ save }) => save(new Blob([text], { type: 'application/yaml' }), `${[namespace, name].filter(Boolean).join('-')}.yaml`),
      () => setFailed(true),
    );
  };
  return (
    <>
      <div className="yaml-bar">
        <CopyButton text={text} />
        <button type="button" className="button button-small" onClick={download}>
          {t.yaml.download}
        </button>
      </div>
      <pre className="job-scroller yaml" translate="no" tabIndex={0}>
        {shown.lines.map((line, n) => (
          <div key={n} className={shown.changed.has(n) ? 'yaml-changed' : undefined}>
            {line || ' '}
          </div>
        ))}
      </pre>
    </>
  );
}

/** The same object with all numbers as they are; undefined until it is read. */
export function useExact(told: KubeObject | undefined, of: Resource<KubeObject> | undefined): KubeObject | undefined {
  const kc = useKubecast();
  const [exact, setExact] = useState<{ readonly told: KubeObject; readonly object: KubeObject }>();
  const rounded = useMemo(() => of !== undefined && isRounded(told), [told, of]);
  useEffect(() => {
    if (!told || !of || !rounded) return undefined;
    const control = new AbortController();
    const { namespace, name } = told.metadata;
    exactAnswerTo(kc, pathOf(of, { namespace, name }), control).then(
      (object) => setExact({ told, object: object as KubeObject }),
      () => !control.signal.aborted && setExact({ told, object: told }),
    );
    return () => control.abort();
  }, [kc, told, of, rounded]);
  if (!rounded) return told;
  return exact?.told.metadata.uid === told?.metadata.uid ? exact?.object : undefined;
}

function nothing(status: Status): string {
  if (status === 'loading') return t.loading;
  return isFinal({ status }) ? t.yaml.denied : t.yaml.none;
}
