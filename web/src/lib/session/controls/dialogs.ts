// Dialogs of a session that are opened rarely, loaded apart from its page.
export const DIALOGS = {
  fork: () => import('./ForkDialog.svelte'),
  migrate: () => import('./MigrateDialog.svelte'),
  rollback: () => import('./RollbackDialog.svelte'),
  waterfall: () => import('../waterfall/WaterfallDialog.svelte'),
  resume: () => import('./ResumeDialog.svelte'),
  rename: () => import('./RenameDialog.svelte'),
  share: () => import('./ShareDialog.svelte'),
}
