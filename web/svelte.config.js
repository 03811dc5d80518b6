import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    runes: true,
    // Shorter than the usual names, which stand in every element and rule that is styled.
    cssHash: ({ hash, css }) => `s${hash(css).slice(0, 5)}`,
  },
}
