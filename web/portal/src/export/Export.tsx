// Takes away what a page shows, as a file.

import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Menu } from '../menu/Menu.tsx';
import { csvFile, most, save, TooMany, yamlFile, type Exportable } from './save.ts';
import { t } from './texts.ts';
import './export.css';

type Form = 'csv' | 'yaml';
type Progress = { readonly count: number; readonly cancel: () => void } | { readonly failed: string };

export function Export({ of }: { readonly of: Exportable }): ReactNode {
  const [progress, setProgress] = useState<Progress>();
  const running = useRef<AbortController>(undefined);
  // Who leaves the page does not want the file any more.
  useEffect(() => () => running.current?.abort(), []);

  const take = async (form: Form): Promise<void> => {
    const control = new AbortController();
    running.current = control;
    const { signal } = control;
    const cancel = (): void => {
      control.abort();
      setProgress(undefined);
    };
    const onCount = (count: number): void => {
      if (!signal.aborted) setProgress({ count, cancel });
    };
    onCount(0);
    try {
      const blob = form === 'yaml' && of.yaml ? await yamlFile(of.yaml, signal, onCount) : await csvFile(of, signal, onCount);
      if (signal.aborted) return;
      save(blob, `${of.file}.${form}`);
      setProgress(undefined);
    } catch (error) {
      if (signal.aborted) return;
      const said = error instanceof TooMany ? t.tooMany(most[form]) : error instanceof Error ? error.message : String(error);
      setProgress({ failed: said });
    }
  };

  if (progress && 'failed' in progress) {
    return (
      <span className="export-progress" role="alert">
        {t.failed} {progress.failed}
        <button type="button" className="button" onClick={() => setProgress(undefined)}>
          {t.dismiss}
        </button>
      </span>
    );
  }
  if (progress) {
    return (
      <span className="export-progress">
        {t.count(progress.count)}
        <button type="button" className="button" onClick={progress.cancel}>
          {t.cancel}
        </button>
      </span>
    );
  }
  return (
    <Menu label={t.export}>
      {(of.yaml ? (['csv', 'yaml'] as const) : (['csv'] as const)).map((form) => (
        <button key={form} type="button" className="button" data-closes onClick={() => void take(form)}>
          {t[form]}
        </button>
      ))}
    </Menu>
  );
}
