import type { Kubecast } from '@kubecast/sdk';
import { byToken, loginAddress } from './kc.ts';

export function SignIn({ onSignIn }: { onSignIn: (kc: Kubecast) => void }) {
  const address = loginAddress();
  if (address) return <a href={address}>Sign in</a>;
  return (
    <form action={(form) => onSignIn(byToken(String(form.get('token'))))}>
      <label>Token <input name="token" type="password" required /></label> <button>Sign in</button>
    </form>
  );
}
