// Takes away what a page shows, as a file.

import { useEffect, useRef, useState, type ReactNode } from 'react';
import { csvFile, most, save, TooMany, yamlFile, type Exportable } from './save.ts';
import { t } from './texts.ts';
import './export.css';

type Form = 'csv' | 'yaml';
type Progress = { readonly count: number; readonly cancel: () => void } | { readonly failed: string };

export function Export({ of }: { readonly of: Exportable }): ReactNode {
  const menu = useRef<HTMLDetailsElement>(null);
  const [progress, setProgress] = useState<Progress>();
  const running = useRef<AbortController>(undefined);
  // Who leaves the page does not want the file any more.
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => {
    const close = (event: Event): void => {
      if (menu.current?.open && !(event.target instanceof Node && menu.current.contains(event.target))) menu.current.open = false;
    };
    document.addEventListener('pointerdown', close);
    document.addEventListener('focusin', close);
    return () => {
      document.removeEventListener('pointerdown', close);
      document.removeEventListener('focusin', close);
    };
  }, []);

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
  const choose = (form: Form): void => {
    if (menu.current) menu.current.open = false;
    void take(form);
  };
  return (
    <details className="export" ref={menu} onKeyDown={(event) => {
      if (event.key !== 'Escape' || !menu.current?.open) return;
      menu.current.open = false;
      menu.current.querySelector('summary')?.focus();
    }}>
      <summary className="button">{t.export}</summary>
      <div className="export-menu">
        <button type="button" className="button" onClick={() => choose('csv')}>
          {t.csv}
        </button>
        {of.yaml && (
          <button type="button" className="button" onClick={() => choose('yaml')}>
            {t.yaml}
          </button>
        )}
      </div>
    </details>
  );
}
