import type { ReactNode } from 'react';
import icon from './icon.svg';

export function Logo(): ReactNode {
  return <img className="logo" src={icon} alt="" width="22" height="22" />;
}
