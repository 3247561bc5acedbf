// The constant of search-index.js, which is written with the site, and the class of vendor/minisearch.js.
declare const SEARCH_INDEX: any;
declare const MiniSearch: any;
