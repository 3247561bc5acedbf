// The constant of search-index.js, which is written with the site.
declare const SEARCH_INDEX: unknown;
