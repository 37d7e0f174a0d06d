import { createContext } from 'react';

/** Who is signed in, as far as the page knows; empty: nobody can tell from their token. For what the browser keeps of each user. */
export const User = createContext('');
