// The state of an object in a word, as the gateway derives it: to be selected, sorted and counted by.

export const statusPath = '$status';

/** A field selector for what has this value at the path; an empty value asks for all. */
export const whereIs = (path: string, value: string): string | undefined => (value === '' ? undefined : `${path}=${value.replace(/[\\,=]/g, '\\$&')}`);

/** A field selector for what has each of these values at its path, whatever signs they have. */
export const whereAll = (values: Readonly<Record<string, string>>): string => Object.entries(values).flatMap(([path, value]) => whereIs(path, value) ?? []).join();
