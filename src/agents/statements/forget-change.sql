DELETE FROM page_changes WHERE link = $link
