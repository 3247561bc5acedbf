// What searchtools.js of Sphinx and vendor/minisearch.js define.
declare const Search: any;
declare const _displayNextItem: any;
declare const MiniSearch: any;
