import { Component, type ReactNode } from 'react';
import { t } from './texts.ts';

interface FailureProps {
  readonly children: ReactNode;
}

/** Rather a word than a blank page, should the portal itself fail. React reports the error to the console. */
export class Failure extends Component<FailureProps, { readonly error: string | undefined }> {
  override readonly state = { error: undefined };

  static getDerivedStateFromError(error: unknown): { readonly error: string } {
    return { error: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="notice" role="alert">
        <h2>{t.failed}</h2>
        <p>{t.failedWhy}</p>
        <p className="notice-said" translate="no">{this.state.error}</p>
        <button type="button" className="button" onClick={() => location.reload()}>
          {t.loadAgain}
        </button>
      </div>
    );
  }
}
