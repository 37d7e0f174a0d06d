import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './App.tsx';
import { bySession } from './kc.ts';

const app = document.getElementById('app');
const kc = await bySession().catch(() => undefined);
if (app) createRoot(app).render(<StrictMode><App signedIn={kc} /></StrictMode>);
