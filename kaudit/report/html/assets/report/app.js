"use strict";
// The page's data: see kaudit/report/html/page_model.py.
const page = JSON.parse(document.getElementById("page").textContent);
document.title = page.title;
