import { attend, createKubecast, Session, type Kubecast } from '@kubecast/sdk';
import { tabs } from '@kubecast/sdk/tabs';

const session = new Session();

/** With the browser's session, or undefined: there is none. */
export async function bySession(): Promise<Kubecast | undefined> {
  return (await session.open()) ? begun(createKubecast({ session: session.source, share: tabs() })) : undefined;
}

/** Undefined: one cannot sign in at a provider here. */
export const loginAddress = (): string | undefined => (session.info.login ? session.loginAddress(location.pathname + location.hash) : undefined);

/** With a token, which is forgotten with the page: also when it is loaded anew. */
export const byToken = (token: string): Kubecast => begun(createKubecast({ token: (reason) => (reason === 'connect' ? token : undefined), share: tabs() }));

export async function signOut(kc: Kubecast): Promise<void> {
  kc.close();
  location.assign((await session.end().catch(() => undefined)) ?? '/');
}

function begun(kc: Kubecast): Kubecast {
  attend(kc);
  return kc;
}
