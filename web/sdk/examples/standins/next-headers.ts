// As much of Next as the guide needs.
export const jar = new Map<string, { readonly value: string }>();
export const cookies = () => Promise.resolve(jar);
