// What a node's conditions say beside whether it is ready.

/** Whether a condition tells of trouble: one that ends in `Ready` where it is False, any other (pressure, a problem that was found) where it is True. */
export const isTrouble = ({ type, status }: { readonly type: string; readonly status: string }): boolean => type !== 'Ready' && status === (type.endsWith('Ready') ? 'False' : 'True');
