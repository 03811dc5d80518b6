// Types of the API, as the daemon's OpenAPI document has them.
export type * from './schema.gen'
