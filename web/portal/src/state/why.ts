import type { Cause } from '@kubecast/sdk';

/** Why a job came to a state, in one line: its cause, where that is known; else what its object says. */
export const whyOf = ({ cause, reason, message }: { readonly cause?: Cause | undefined; readonly reason: string; readonly message: string }): string =>
  cause?.text ?? [reason, message].filter(Boolean).join(': ');
