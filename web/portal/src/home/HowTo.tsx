// How to submit a job of one's own: what a new user reads in place of jobs, and others at the page's end.

import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useState, type ReactNode } from 'react';
import { Copied } from '../job/Copied.tsx';
import { linkTo, type View } from '../view/view.ts';
import { t } from './texts.tsx';

export function HowTo({ view }: { view: View }): ReactNode {
  return (
    <div className="mine-howto">
      <p>{t.none}</p>
      <Submit />
      <p>{t.othersThere(<a href={linkTo('jobs', view)}>{t.allJobs}</a>)}</p>
    </div>
  );
}

/** The same, for who has jobs already. */
export function HowToSubmit(): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <details className="mine-howto" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{t.submitOne}</summary>
      {open && <Submit />}
    </details>
  );
}

function Submit(): ReactNode {
  const user = useUsername();
  return (
    <>
      <p>{t.whose(<code translate="no">kubecast.io/owner</code>, user && <code translate="no">{user}</code>)}</p>
      <Copied text={commandFor(user || t.yourName)} />
    </>
  );
}

/** Submits a job of this user's. Quoted, so that a shell takes no name for more than that. */
export function commandFor(user: string): string {
  const owner = `'kubecast.io/owner=${user.replaceAll("'", "'\\''")}'`;
  return `kubectl create job hello --image=busybox --dry-run=client -o yaml -- sleep 20 | kubectl annotate --local -f - -o yaml ${owner} | kubectl create -f -`;
}

/** As the gateway calls the user; a token may say something else. */
function useUsername(): string {
  const kc = useKubecast();
  const [user, setUser] = useState('');
  useEffect(() => {
    let here = true;
    kc.request('/auth/me', {}, (response) => response.json()).then(
      (body: unknown) => {
        const name = (body as { username?: unknown } | null)?.username;
        if (here && typeof name === 'string') setUser(name);
      },
      () => undefined, // then it is left to be filled in
    );
    return () => {
      here = false;
    };
  }, [kc]);
  return user;
}
