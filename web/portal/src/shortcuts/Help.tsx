// The keys, told in a dialog.

import { useEffect, useRef, useState, type ReactNode } from 'react';
import { setSingleKeys, singleKeys } from './shortcuts.ts';
import { t } from './texts.ts';
import './shortcuts.css';

export function Help({ onClose }: { onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [single, setSingle] = useState(singleKeys);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="keys" aria-labelledby="keys-title" onClose={onClose}>
      <h2 id="keys-title">{t.title}</h2>
      <dl>
        {t.keys.map(([keys, what]) => (
          <div key={what}>
            <dt translate="no">
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          checked={single}
          onChange={({ target }) => {
            setSingleKeys(target.checked);
            setSingle(singleKeys());
          }}
        />
        {t.single}
      </label>
      <button type="button" className="button" onClick={() => dialog.current?.close()}>
        {t.close}
      </button>
    </dialog>
  );
}
