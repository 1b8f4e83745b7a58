// As much of VS Code as commands need to be called, and to say something, outside of it.
type Command = (...args: unknown[]) => unknown;

const registered = new Map<string, Command>();

/** What the user was told, with its kind, oldest first. */
export const told: string[] = [];

export const commands = {
  registerCommand(name: string, run: Command): { dispose(): void } {
    registered.set(name, run);
    return { dispose: () => registered.delete(name) };
  },
  executeCommand: (name: string, ...args: unknown[]): unknown => registered.get(name)!(...args),
};

export const l10n = { t: (text: string, ...args: unknown[]): string => text.replace(/\{(\d+)\}/g, (_, at: string) => String(args[Number(at)])) };

export const window = {
  showInformationMessage: (text: string): void => void told.push(`info: ${text}`),
  showErrorMessage: (text: string): void => void told.push(`error: ${text}`),
};
