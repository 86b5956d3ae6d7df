-- A file that tells AI about a site: it is read, but nobody edits it by hand.
CREATE OR REPLACE MACRO is_for_ai(page) AS regexp_matches(
  page,
  '(?i)'
  || '/(llms(-[\w-]+)?\.txt|ai\.txt|(openapi|swagger|asyncapi)([.-][\w.-]+)?\.(json|ya?ml))$'
  || '|^/\.well-known/(ai-plugin|agent|agent-card|mcp|openapi)(\.json|\.ya?ml)?$'
);

COMMENT ON MACRO is_for_ai IS 'Whether an address is a file for AI, about the site. is_for_ai(''/llms-full.txt'') and is_for_ai(''/api/openapi.json'') are true. is_page is false for them';

-- A page with a name such as /node.js or /api/system.text.json must not be lost, so a name ending in .js, .json, .xml and the
-- like is a file only at certain places, or if it is one that only files have.
CREATE OR REPLACE MACRO is_page(page) AS NOT (
  regexp_matches(
    page,
    '(?i)'
    -- Directories of frameworks and of the network in front of a site.
    || '^/(_(next|nuxt|astro|app|vercel|netlify|ipx|static|images|sources|error)(/.*)?|cdn-cgi(/.*)?|pagefind/.+'
    -- The pages that stand for errors, also those of a language or version. /docs/404-errors and /errors/404 are pages about them.
    || '|((docs|[a-z]{2}(-[a-z]{2,4})?|v?\d+(\.[\dx]+)*)/){0,3}(404|500)|_?not-found'
    -- What scanners of weak sites ask for.
    || '|wp-(admin|content|includes|json)(/.*)?|(phpmyadmin|pma|cgi-bin|server-status|hnap1|_ignition|boaform)(/.*)?|vendor/phpunit/.*'
    || '|([a-z]{2}(-[a-z]{2,4})?/)?((blog|changelog|comments|news)/)?(feed|rss|atom)(/(feed|rss2?|atom|rdf))?)$'
  )
  -- Most pages have no dot, so they are compared with nothing else.
  OR CASE WHEN contains(page, '.') THEN
    is_for_ai(page)
    -- Pictures, fonts, recordings, archives, feeds and maps of scripts are files wherever they are.
    OR regexp_matches(
      page,
      '(?i)\.(png|jpe?g|gif|webp|avif|svg|ico|bmp|tiff?|woff2?|ttf|otf|eot|mp[34]|m4[av]|mov|webm|wav|ogg'
      || '|t?gz|bz2|xz|7z|rar|dmg|msi|apk|deb|rpm|whl|iso|rss|atom|rsc|pf_\w+|webmanifest|wasm|(m?js|css)\.map)$'
    )
    -- Scripts, styles and data in directories that builds of sites have, with a hash or .min in their names, or, all but
    -- scripts, directly below the front page.
    OR regexp_matches(page, '(?i)/(assets|static|dist|js|css|chunks|_[\w-]+)/(.*/)?[^/]+\.(m?js|css|json|xml|txt)$')
    OR regexp_matches(page, '(?i)([.-][0-9a-f]{8,}|\.min)\.(m?js|css|json)$')
    OR regexp_matches(page, '(?i)^/[^/.]+\.(css|json|xml|txt|ya?ml|toml|ini|conf|log|sql|csv|zip|tar|bak|old|key|pem|db|sqlite)$')
    OR regexp_matches(
      page,
      '(?i)'
      -- The scripts of a site that are directly below its front page, and what begins with a dot.
      || '^/((service-?worker|workbox-\w+|sw|app|main|index|bundle|vendor|runtime|polyfills?|scripts?|search|analytics|config|env)\.js'
      || '|\.[^/]+(/.*)?'
      -- What scanners of weak sites ask for.
      || '|(phpinfo|info|test|shell|admin|adminer|config|login)\.php)$'
      || '|/(wp-[\w-]+|xmlrpc)\.php$|/wlwmanifest\.xml$|/\.(env|git|svn|aws|ssh|ht\w+|DS_Store)([./].*)?$|/\.\.(/|$)'
      -- Files that crawlers ask for, at a front page or in the directory of a site or language.
      || '|^(/[^/]+)?/(robots|ads|app-ads|security|humans)\.txt$|^(/[^/]+)?/(manifest|browserconfig|opensearch)\.(json|xml)$'
      || '|/sitemap([_-][\w-]+)?\.(xml|txt)$|/(feed|rss|atom|index)\.xml$|/(feed|rss)\.json$|/(search[_-]?index|page-data|objects|__data|_payload)\.(js|json|inv)$'
    )
  ELSE false END
);

COMMENT ON MACRO is_page IS 'Whether an address is a page of the site. Lists, reports and proposals have only pages: not a picture, script, feed or other file, a system address such as /404, /robots.txt or /sitemap.xml, or one that scanners ask for, such as /wp-login.php. is_page(''/assets/app.js'') is false, and is_page(''/guides/node.js'') is true. The views of all addresses are in page_views, and in the totals of the site';
