import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider, useConnection } from '@kubecast/sdk/react';
import { useState } from 'react';
import { Job } from './Job.tsx';
import { Jobs } from './Jobs.tsx';
import { signOut } from './kc.ts';
import { SignIn } from './SignIn.tsx';

export function App({ signedIn }: { signedIn?: Kubecast | undefined }) {
  const [kc, setKc] = useState(signedIn);
  const [job, open] = useState<{ namespace: string; name: string }>();
  if (!kc) return <SignIn onSignIn={setKc} />;
  return (
    <KubecastProvider client={kc}>
      <header>
        <Connection /> <button onClick={() => void signOut(kc)}>Sign out</button>
      </header>
      {job ? <Job {...job} onBack={() => open(undefined)} /> : <Jobs onOpen={open} />}
    </KubecastProvider>
  );
}

function Connection() {
  const connection = useConnection();
  if (connection?.error?.reason === 'http:401') return <a href="/">Sign in again</a>;
  return <span role="status">{connection?.status}</span>;
}
